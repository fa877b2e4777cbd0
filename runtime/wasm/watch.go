package wasm

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// unasked are the functions that are no questions to the event or the plugin's values: what they answer follows from the
// settings, the node and the time of the event, or is nothing.
var unasked = []string{"fail", "abort", "config", "log", "log_level", "metric", "now", "random", "feature"}

// watched is a host function whose call somebody watches, or answers.
func (h *hostFunction) watched(ctx context.Context, f *frame) int64 {
	has := f.of.has.Has(h.needs)
	if !h.asked {
		return h.answered(ctx, f, has)
	}
	q, ok := f.question()
	if !ok { // it traps
		return h.answered(ctx, f, has)
	}
	f.noted = nil
	if has && f.watch.Ask(q) {
		result := f.give(q)
		f.watch.Answered(q)
		return result
	}
	result := h.answered(ctx, f, has)
	switch {
	case result < 0:
		q.Errno = abi.Errno(result)
	case h.row.Name == "get_i64":
		q.Number = int64(binary.LittleEndian.Uint64(f.region(uint32(f.stack[2]), 8)))
	case f.noted != nil:
		q.Data = f.noted
	default:
		q.Number = result
	}
	f.watch.Answered(q)
	return result
}

// answered calls the function, or denies what it needs.
func (h *hostFunction) answered(ctx context.Context, f *frame, has bool) int64 {
	if !has {
		return int64(abi.Denied)
	}
	return h.run(ctx, f)
}

// question copies what the guest asks. What is too long to be an argument is cut. With false, a pointer is outside the
// guest's memory.
func (f *frame) question() (q *plugin.Question, ok bool) {
	row := f.row
	q = &plugin.Question{Function: row}
	for _, a := range row.Arguments() {
		switch i := a.At; {
		case a.Shape == abi.Buffer:
			_, ok := f.inMemory(i)
			return q, ok
		case a.Shape == abi.Number:
			if _, ok := f.memory.Read(uint32(f.stack[i]), 8); !ok {
				return nil, false
			}
		case a.Shape == abi.Text:
			b, ok := f.inMemory(i)
			if !ok {
				return nil, false
			}
			q.Args = append(q.Args, plugin.Arg{Text: string(b[:min(len(b), maxArgument+1)]), IsText: true})
		case a.Type == abi.I64:
			q.Args = append(q.Args, plugin.Arg{Number: int64(f.stack[i])})
		default:
			q.Args = append(q.Args, plugin.Arg{Number: int64(f.i32(i))})
		}
		if a.Name == "object" || a.Name == "pod" {
			q.Kind = f.event.Kind(abi.Object(f.i32(a.At)))
		}
	}
	return q, true
}

// inMemory is bytes for who must not trap. A length of 0 is in memory wherever it is.
func (f *frame) inMemory(i int) ([]byte, bool) {
	if uint32(f.stack[i+1]) == 0 {
		return nil, true
	}
	return f.memory.Read(uint32(f.stack[i]), uint32(f.stack[i+1]))
}

// give gives the guest the answer of a watcher, at the price of the host's own.
func (f *frame) give(q *plugin.Question) int64 {
	for _, arg := range q.Args {
		f.moved += len(arg.Text)
	}
	switch name := q.Function.Name; name {
	case "cgroup_get", "cri_raw":
		f.work += fileFuel
	case "cgroup_read": // of two calls, of which the first has too small a buffer, one reads
		if len(q.Data) <= len(f.bytes(4)) {
			f.work += fileFuel * len(q.Args[0].Text) / 4 * elementsOf(q.Args[1].Text)
		}
	case "list_set":
		f.elements(elementsOf(q.Args[2].Text))
	case "map_dump", "list_dump":
		if len(q.Data) >= 4 {
			f.elements(int(binary.LittleEndian.Uint32(q.Data)))
		}
	case "pod_list", "container_list":
		f.elements(len(q.Data) / 4)
	case "get_i64":
		if out := f.region(uint32(f.stack[2]), 8); q.Errno == abi.OK {
			binary.LittleEndian.PutUint64(out, uint64(q.Number))
			return 0
		}
	}
	buf := slices.IndexFunc(q.Function.Params, func(p abi.Param) bool { return p.Name == "buf" })
	switch {
	case buf >= 0:
		return answer(f, buf, q.Data, q.Errno)
	case q.Errno != abi.OK:
		return int64(q.Errno)
	}
	return q.Number
}

// elementsOf counts the elements of an encoded list.
func elementsOf(list string) (n int) {
	abi.EachElement(list, func(string) bool { n++; return true })
	return n
}
