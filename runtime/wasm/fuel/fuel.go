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
// A guest cannot name either, nor Refuel: their indices are past those that the module has by
// itself, and package preflight refuses a module that uses such an index or a name that
// begins with preflight.ReservedPrefix.
//
// It also exports what only the host may use: the module's mutable globals, so that an instance
// can be reset, and its start function, which wazero would run before the host can see the
// guest's fuel and stack.
//
// The same module gives the same bytes, and the same call of it uses the same fuel,
// compiled or interpreted, unless it branches by the bits of a NaN: engines choose them.
package fuel

import (
	"cmp"
	"fmt"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// What a rewritten module imports and exports.
const (
	Module = preflight.ReservedPrefix + "fuel"  // the module of the one function that it imports:
	Refuel = "refuel"                           // (left i64) -> i64: takes what is left, below zero, and returns the new fuel
	Fuel   = preflight.ReservedPrefix + "fuel"  // an i64 global, 0 in a new instance
	Stack  = preflight.ReservedPrefix + "stack" // an i32 global, in bytes; Options.Stack in a new instance
	Start  = preflight.ReservedPrefix + "start" // the start function, if there is one
)

// Global is the name of the export of the module's n-th mutable global.
func Global(n int) string { return fmt.Sprintf("%sglobal_%d", preflight.ReservedPrefix, n) }

// DefaultStack is 1 MiB: 16,000 frames of the smallest size, some 2,000 of a guest
// of standard Go. wazero alone stops at 400 MB.
const DefaultStack = 1 << 20

// Options are what a module is rewritten with.
type Options struct {
	Stack int32 // bytes that the frames of all running functions may have together; DefaultStack if 0

	// Unmetered adds only the exports that are not for metering: such a guest runs for as long
	// as it likes. It is for tests of what metering is for.
	Unmetered bool
}

// Instrument returns a module that does what the scanned one does and pays for it. It keeps
// no custom section but the names of functions. It relies on what the scan has checked, and
// fails only if the result would be too large.
func Instrument(m *preflight.Outline, o Options) ([]byte, error) {
	o.Stack = cmp.Or(o.Stack, DefaultStack)
	sections, size := [len(binary.Order) + 1]binary.Reader{}, len(m.Names)
	for id, content := range binary.Sections(m.Module) {
		if id != binary.CustomSection {
			sections[id] = content
			size += content.Len()
		}
	}
	// Real guests come to less than twice their size; an empty loop of 3 bytes becomes 30.
	const slack, more = 64 << 10, 1 << 20
	w := rewriter{Outline: m, options: o, limit: min(4*size, 2*size+more) + slack}
	w.out.b = append(make([]byte, 0, size+size/2), binary.Magic...)
	for _, id := range binary.Order {
		w.section(id, sections[id])
	}
	w.names()
	if len(w.out.b) > w.limit {
		return nil, fmt.Errorf("metering: it would make a module of more than %d bytes, which is too many for what it holds", w.limit)
	}
	return w.out.b, nil
}
