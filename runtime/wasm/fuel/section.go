package fuel

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// rewriter is the state of one Instrument.
type rewriter struct {
	*preflight.Outline
	options Options
	limit   int // bytes of out
	out     writer
}

// mutable marks a global that can be set.
const mutable = 1

// section writes one section with what is added to it. r is empty if the module has none.
func (w *rewriter) section(id binary.SectionID, r binary.Reader) {
	out := writer{}
	switch {
	case id == binary.ExportSection:
		w.exports(&out)
	case id == binary.StartSection: // an export
	case w.options.Unmetered:
		out.bytes(r.Rest())
	case id == binary.TypeSection:
		out.entries(&r, 1)
		out.byte(binary.FunctionType, 1, binary.I64, 1, binary.I64)
	case id == binary.ImportSection:
		out.entries(&r, 1)
		out.name(Module)
		out.name(Refuel)
		out.byte(binary.KindFunction)
		out.u32(uint32(w.Types()))
	case id == binary.GlobalSection:
		out.entries(&r, 2)
		out.byte(binary.I64, mutable) // Fuel
		out.constant(binary.I64Const, 0)
		out.op(binary.End)
		out.byte(binary.I32, mutable) // Stack
		out.constant(binary.I32Const, int64(w.options.Stack))
		out.op(binary.End)
	case id == binary.ElementSection:
		w.elements(&r, &out)
	case id == binary.CodeSection:
		for n := range out.count(&r) {
			w.body(w.Imported.Functions+int(n), r.Sub(), &out)
			if len(out.b) > w.limit { // functions are too many
				break
			}
		}
	default:
		out.bytes(r.Rest())
	}
	if len(out.b) > 0 {
		w.out.byte(id)
		w.out.sized(out.b)
	}
}

func (w *rewriter) fuel() uint32  { return uint32(w.AllGlobals()) }
func (w *rewriter) stack() uint32 { return w.fuel() + 1 }

// moved is the new index of a function. Refuel stands behind the module's own imports.
func (w *rewriter) moved(function uint32) uint32 {
	if w.options.Unmetered || function < uint32(w.Imported.Functions) {
		return function
	}
	return function + 1
}

func (w *rewriter) exports(out *writer) {
	exports := slices.Clone(w.Exports)
	if !w.options.Unmetered {
		exports = append(exports,
			preflight.Export{Name: Fuel, Kind: binary.KindGlobal, Index: w.fuel()},
			preflight.Export{Name: Stack, Kind: binary.KindGlobal, Index: w.stack()})
	}
	for n, index := range w.Mutable() {
		exports = append(exports, preflight.Export{Name: Global(n), Kind: binary.KindGlobal, Index: index})
	}
	if w.Start != nil {
		exports = append(exports, preflight.Export{Name: Start, Kind: binary.KindFunction, Index: *w.Start})
	}
	out.u32(uint32(len(exports)))
	for _, e := range exports {
		if e.Kind == binary.KindFunction {
			e.Index = w.moved(e.Index)
		}
		out.name(e.Name)
		out.byte(e.Kind)
		out.u32(e.Index)
	}
}

// elements copies active segments. Those of kind 0 do not name their table.
func (w *rewriter) elements(r *binary.Reader, out *writer) {
	for range out.count(r) {
		kind := r.U32()
		out.u32(kind)
		if kind != 0 {
			out.u32(r.U32())
		}
		out.bytes(r.Instruction().Raw) // a constant
		out.bytes(r.Instruction().Raw) // its end
		if kind != 0 {
			out.byte(r.Byte())
		}
		for range out.count(r) {
			out.u32(w.moved(r.U32()))
		}
	}
}

// names keeps the names of functions, for stack traces. What other custom sections say of code
// is no longer true. wazero reads names beyond the end of their section and allocates by what it
// claims, so names that are not sound, or are of functions that are not there, are left out.
func (w *rewriter) names() {
	const functions = 1
	for r := binary.NewReader(w.Names, 0); r.Len() > 0; {
		kind, names := r.Byte(), r.Sub()
		if kind != functions {
			continue
		}
		n, out := names.Count("names", len(w.Names)), writer{}
		out.u32(uint32(n))
		for range n {
			index := names.U32()
			if index >= uint32(w.Functions()) {
				return
			}
			out.u32(w.moved(index))
			out.name(string(names.Name()))
		}
		if names.End(); r.Err() != nil || names.Err() != nil {
			return
		}
		content := writer{}
		content.name("name")
		content.byte(functions)
		content.sized(out.b)
		w.out.byte(binary.CustomSection)
		w.out.sized(content.b)
		return
	}
}
