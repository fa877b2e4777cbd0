package wasm

// This file holds the host functions by which a guest asks for changes. Each
// change is checked when it is made; what is refused is the guest's to handle,
// and it may go on.

import (
	"context"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func setInt64(_ context.Context, f *frame) int64 {
	return done(f.adj.SetInt64(f.object(0), f.field(1), int64(f.stack[2])))
}

func setBytes(_ context.Context, f *frame, v string) int64 {
	return done(f.adj.SetText(f.object(0), f.field(1), v))
}

func mapSet(_ context.Context, f *frame, key, value string) int64 {
	return done(f.adj.SetEntry(f.object(0), f.field(1), key, value))
}

func mapDelete(_ context.Context, f *frame, key string) int64 {
	return done(f.adj.DeleteEntry(f.object(0), f.field(1), key))
}

// listSet takes a list as listDump writes it.
func listSet(_ context.Context, f *frame, encoded string) int64 {
	elements := 0
	if !abi.EachElement(encoded, func(string) bool { elements++; return true }) {
		return int64(abi.Invalid)
	}
	f.elements(elements)
	return done(f.adj.Add(plugin.Change{Op: plugin.SetList, Object: f.object(0), Field: f.field(1), Text: encoded}))
}

func listAdd(_ context.Context, f *frame, element string) int64 {
	return done(f.adj.AddElement(f.object(0), f.field(1), element))
}

func listDelete(_ context.Context, f *frame, key string) int64 {
	return done(f.adj.DeleteElement(f.object(0), f.field(1), key))
}

func cgroupSet(_ context.Context, f *frame, file, value string) int64 {
	return done(f.adj.WriteFile(f.object(0), file, value))
}

func withdraw(_ context.Context, f *frame, key string) int64 {
	gone, err := f.adj.Withdraw(f.object(0), f.field(1), key)
	f.elements(gone)
	return done(err)
}

// conflict tells with which plugin the last change conflicts that was refused so.
func conflict(_ context.Context, f *frame) int64 {
	if first := f.adj.Opponent(); first != "" {
		return answer(f, 0, first, abi.OK)
	}
	return answer(f, 0, "", abi.NotFound)
}

func done(err error) int64 { return int64(plugin.ErrnoOf(err)) }

// maxReason is how much is kept of a reason that a guest gives.
const maxReason = 1 << 10

func reject(_ context.Context, f *frame) int64 {
	reason := f.bytes(1)
	return done(f.adj.Reject(uint32(f.i32(0)), string(reason[:min(len(reason), maxReason+1)])))
}

// fail keeps the reason of the negative number that the guest is about to return.
func fail(_ context.Context, f *frame) int64 {
	f.reason = sanitize(f.adj, f.bytes(0), maxReason)
	return 0
}

// abort ends the guest, with a reason that is worth more than "unreachable".
func abort(_ context.Context, f *frame) int64 {
	panic(trapf("aborted: %s", sanitize(f.adj, f.bytes(0), maxReason)))
}
