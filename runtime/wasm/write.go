package wasm

// This file holds the host functions by which a guest asks for changes. Each
// change is checked when it is made; what is refused is the guest's to handle,
// and it may go on.

import (
	"context"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func setInt64(_ context.Context, f *frame) int64 {
	return done(f.adj.SetInt64(f.object(0), f.field(1), int64(f.stack[2])))
}

func setBytes(_ context.Context, f *frame) int64 {
	v, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.SetText(f.object(0), f.field(1), v))
}

func mapSet(_ context.Context, f *frame) int64 {
	key, value, errno := f.pair(2)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.SetEntry(f.object(0), f.field(1), key, value))
}

func mapDelete(_ context.Context, f *frame) int64 {
	key, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.DeleteEntry(f.object(0), f.field(1), key))
}

// listSet takes a list as listDump writes it.
func listSet(_ context.Context, f *frame) int64 {
	encoded, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	var list []string
	if !abi.EachElement(encoded, func(e string) bool { list = append(list, e); return true }) {
		return int64(abi.Invalid)
	}
	f.elements(len(list))
	return done(f.adj.SetList(f.object(0), f.field(1), list))
}

func listAdd(_ context.Context, f *frame) int64 {
	element, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.AddElement(f.object(0), f.field(1), element))
}

func listDelete(_ context.Context, f *frame) int64 {
	key, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.DeleteElement(f.object(0), f.field(1), key))
}

func cgroupSet(_ context.Context, f *frame) int64 {
	file, value, errno := f.pair(1)
	if errno != abi.OK {
		return int64(errno)
	}
	return done(f.adj.WriteFile(f.object(0), file, value))
}

// pair copies two strings, together.
func (f *frame) pair(i int) (first, second string, errno abi.Errno) {
	a, b := f.bytes(i), f.bytes(i+2)
	if len(a) > maxArgument || len(b) > maxArgument {
		return "", "", abi.TooLarge
	}
	f.moved += len(a) + len(b)
	var both strings.Builder
	both.Grow(len(a) + len(b))
	both.Write(a)
	both.Write(b)
	return both.String()[:len(a)], both.String()[len(a):], abi.OK
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
