// Package fuel makes guests countable: it rewrites a WebAssembly module so that
// it pays for what it runs, and stops when it cannot. It looks at bytes only; who
// runs the module, for how long and with how much fuel is for its callers to say.
//
// What a rewritten module has besides its own:
//
//   - The global Fuel, from which every basic block takes its cost before it runs.
//     At the entry of a function, at the head of a loop and after memory has grown
//     or was copied or filled, the guest looks whether it fell below zero, and if so
//     calls the import Refuel: host code, where Go's collector may stop the world
//     and the host may end the call. Meter is the account that it keeps.
//   - The global Stack, from which every call takes the size of its frame until it
//     returns. A call for which nothing is left traps, and leaves Stack below zero. A trap
//     passes the places where frames are given back, so the host sets Stack before
//     each call.
//
// A guest cannot name either, nor Refuel: their indices are past those that the
// module has by itself, and Instrument refuses a module that uses such an index or
// a name that begins with Reserved.
//
// The same module gives the same bytes, and the same call of it uses the same fuel,
// compiled or interpreted, unless it branches by the bits of a NaN: engines choose them.
package fuel

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// Reserved begins the names that modules may neither import nor export.
const Reserved = "__wp_"

// What a rewritten module imports and exports.
const (
	Module = "__wp_fuel"  // the module of the one function that it imports:
	Refuel = "refuel"     // (left i64) -> i64: takes what is left, below zero, and returns the new fuel
	Fuel   = "__wp_fuel"  // an i64 global, 0 in a new instance
	Stack  = "__wp_stack" // an i32 global, in bytes; Options.Stack in a new instance
)

// DefaultStack is 1 MiB: 16,000 frames of the smallest size, some 2,000 of a guest
// of standard Go. wazero alone stops at 400 MB.
const DefaultStack = 1 << 20

// Options are what a module is rewritten with.
type Options struct {
	Stack int32 // bytes that the frames of all running functions may have together; DefaultStack if 0
}

// longest is how many bytes the rewritten form of a module of n bytes may have. Real guests
// come to less than twice their size; an empty loop of 3 bytes becomes 30.
func longest(n int) int {
	const slack, more = 64 << 10, 1 << 20
	return min(4*n, 2*n+more) + slack
}

// Instrument returns a module that does what this one does and pays for it. It
// keeps none of module, and none of its custom sections but the names of functions.
//
// It refuses what it does not know, so what it returns holds nothing but
// instructions that package binary accepts; whether they are valid is for wazero to
// check. An error names the section, the function by its index in the module, and
// the offset in the module.
func Instrument(module []byte, o Options) ([]byte, error) {
	if o.Stack == 0 {
		o.Stack = DefaultStack
	}
	w := rewriter{options: o, limit: longest(len(module))}
	if err := w.rewrite(module); err != nil {
		return nil, fmt.Errorf("metering: %w", err)
	}
	return w.out, nil
}

var errNoModule = errors.New("it is not a WebAssembly module of version 1")

// rewriter is the state of one Instrument.
type rewriter struct {
	options Options
	limit   int // bytes of out
	out     []byte
	next    int // the rank of the first section that may follow

	types     []binary.Signature
	functions []uint32 // the type of each function, the imported ones first
	imported  uint32   // how many of them are imported
	tables    uint32
	memories  uint32
	globals   uint32 // all that the module has by itself
	bodies    uint32
}

// rewrite takes a module to out, section by section.
func (w *rewriter) rewrite(module []byte) error {
	if !bytes.HasPrefix(module, []byte(binary.Magic)) {
		return errNoModule
	}
	w.out = append(make([]byte, 0, len(module)+len(module)/2), binary.Magic...)
	r := binary.NewReader(module[len(binary.Magic):], len(binary.Magic))
	for r.Len() > 0 {
		at, id := r.Offset(), r.Byte()
		content := r.Sub()
		if r.Err() != nil {
			break
		}
		if err := w.section(id, at, &content); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("module, offset %#x: %w", r.ErrOffset(), err)
	}
	w.addUntil(len(order))
	return nil
}

// section writes one section.
func (w *rewriter) section(id binary.SectionID, at int, r *binary.Reader) error {
	if id == binary.CustomSection {
		w.custom(r)
		return nil
	}
	rank := slices.Index(order, id)
	if rank < w.next {
		return fmt.Errorf("module, offset %#x: section %d is unknown, out of order or there twice", at, id)
	}
	w.addUntil(rank)
	w.next = rank + 1
	kind, content := kinds[id], writer{}
	w.content(kind, r, &content)
	r.End()
	if err := r.Err(); err != nil {
		return fmt.Errorf("%s section, offset %#x: it %w", kind.name, r.ErrOffset(), err)
	}
	w.emit(id, content)
	return nil
}

// addUntil adds the sections before a rank that are missing and have to be there.
func (w *rewriter) addUntil(rank int) {
	for ; w.next < rank; w.next++ {
		id := order[w.next]
		if kind := kinds[id]; kind.add != nil {
			content := writer{}
			content.u32(kind.added)
			kind.add(w, &content)
			w.emit(id, content)
		}
	}
}

// content writes what a section holds: its entries, then those that are added.
func (w *rewriter) content(kind kind, r *binary.Reader, out *writer) {
	if kind.whole != nil {
		kind.whole(w, r, out)
		return
	}
	n := r.Count("entries", math.MaxInt)
	out.u32(uint32(n) + kind.added)
	for range n {
		kind.entry(w, r, out)
		if len(w.out)+len(out.b) > w.limit {
			r.Fail("would make a module of more than %d bytes, which is too many for what it holds", w.limit)
		}
		if r.Err() != nil {
			return
		}
	}
	if kind.add != nil {
		kind.add(w, out)
	}
}

func (w *rewriter) emit(id binary.SectionID, content writer) {
	out := writer{w.out}
	out.byte(id)
	out.u32(uint32(len(content.b)))
	w.out = append(out.b, content.b...)
}
