package preflight

// This file reads the sections of a module but code, one function each. Their
// layout is that of https://www.w3.org/TR/wasm-core-2/#binary-modules.

import (
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

func (s *scanner) readTypes(r *binary.Reader) {
	n := r.Count("types", maxTypes)
	s.types = slices.Grow(s.types, n) // n is no more than the bytes that are there
	for range n {
		at, kind := r.Offset(), r.Byte()
		if r.Err() == nil && kind != binary.FunctionType {
			r.FailAt(at, "holds a type of kind %#x, which is no function", kind)
		}
		s.types = append(s.types, uint32(r.Offset()))
		passValues(r, "parameters", maxValues)
		passValues(r, "results", 1)
	}
}

// passValues reads a vector of value types.
func passValues(r *binary.Reader, what string, limit int) {
	for range r.Count(what, limit) {
		valueType(r)
	}
}

func valueType(r *binary.Reader) binary.ValueType {
	at, t := r.Offset(), r.Byte()
	if r.Err() == nil && !binary.IsValueType(t) {
		r.FailAt(at, "holds value type %#x, which is none of i32, i64, f32 and f64", t)
	}
	return t
}

func (s *scanner) readImports(r *binary.Reader) {
	for range r.Count("imports", maxImports) {
		i := Import{Module: readName(r), Name: readName(r), Kind: r.Byte()}
		switch i.Kind {
		case binary.KindFunction:
			s.functions = append(s.functions, s.readType(r))
			s.Imported.Functions++
			i.Signature, _ = s.Signature(uint32(len(s.functions) - 1))
		case binary.KindTable:
			s.Imported.Tables++
			r.Byte()
			r.Limits()
		case binary.KindMemory:
			s.Imported.Memories++
			r.Limits()
		case binary.KindGlobal:
			s.Imported.Globals++
			readGlobalType(r)
		default:
			r.Fail("imports something of unknown kind %d", i.Kind)
		}
		s.Imports = append(s.Imports, i)
	}
}

// readType reads the index of a type.
func (s *scanner) readType(r *binary.Reader) uint32 {
	at, t := r.Offset(), r.U32()
	if r.Err() == nil && uint64(t) >= uint64(len(s.types)) {
		r.FailAt(at, "names type %d of %d", t, len(s.types))
	}
	return t
}

func (s *scanner) readFunctions(r *binary.Reader) {
	n := r.Count("functions", maxFunctions)
	s.functions = slices.Grow(s.functions, n)
	for range n {
		s.functions = append(s.functions, s.readType(r))
	}
}

func (s *scanner) readTable(r *binary.Reader) {
	for range r.Count("tables", 1) {
		at, t := r.Offset(), r.Byte()
		if r.Err() == nil && t != binary.FuncRef {
			r.FailAt(at, "holds a table of type %#x, which is not of functions", t)
		}
		at = r.Offset()
		l := r.Limits()
		switch {
		case l.Min > maxTable:
			r.FailAt(at, "holds a table of %d entries, the limit is %d", l.Min, maxTable)
		case l.Bounded && l.Min > l.Max:
			r.FailAt(at, "holds a table of %d entries that may have at most %d", l.Min, l.Max)
		}
		s.Table = &l
	}
}

func (s *scanner) readMemory(r *binary.Reader) {
	for range r.Count("memories", 1) {
		at, m := r.Offset(), r.Limits()
		switch {
		case m.Min > maxPages || m.Max > maxPages:
			r.FailAt(at, "holds a memory of %d pages, the limit is %d", max(m.Min, m.Max), maxPages)
		case m.Bounded && m.Min > m.Max:
			r.FailAt(at, "holds a memory of %d pages that may have at most %d", m.Min, m.Max)
		}
		s.Memory = &m
	}
}

func (s *scanner) readGlobals(r *binary.Reader) {
	n := r.Count("globals", maxGlobals)
	s.Globals = slices.Grow(s.Globals, n)
	for range n {
		s.Globals = append(s.Globals, readGlobalType(r))
		s.expression(r)
	}
}

func readGlobalType(r *binary.Reader) Global {
	g, at := Global{Type: valueType(r)}, r.Offset()
	switch mutable := r.Byte(); mutable {
	case 0:
	case 1:
		g.Mutable = true
	default:
		r.FailAt(at, "holds a global of mutability %#x", mutable)
	}
	return g
}

// expression passes a constant expression: a constant, or an imported global.
func (s *scanner) expression(r *binary.Reader) {
	switch in := r.Instruction(); in.Op {
	case binary.I32Const, binary.I64Const, binary.F32Const, binary.F64Const:
	case binary.GlobalGet:
		within(r, in.Offset, "global", in.Index, s.Imported.Globals)
	default:
		if r.Err() == nil {
			r.FailAt(in.Offset, "holds %v in a constant expression", in.Op)
		}
	}
	if in := r.Instruction(); r.Err() == nil && in.Op != binary.End {
		r.FailAt(in.Offset, "holds a constant expression of more than one instruction")
	}
}

// within holds an index against how many there are.
func within(r *binary.Reader, at int, what string, index uint32, count int) {
	if r.Err() == nil && uint64(index) >= uint64(count) {
		r.FailAt(at, "names %s %d of %d", what, index, count)
	}
}

func (s *scanner) readExports(r *binary.Reader) {
	for range r.Count("exports", maxExports) {
		at := r.Offset()
		e := Export{readName(r), r.Byte(), 0}
		index := r.Offset()
		e.Index = r.U32()
		if _, twice := s.Export(e.Name); twice && r.Err() == nil {
			r.FailAt(at, "holds %q twice", shorten([]byte(e.Name)))
		}
		switch e.Kind { // to hold it to what there is before anything is added to the module
		case binary.KindFunction:
			within(r, index, "function", e.Index, len(s.functions))
		case binary.KindTable:
			within(r, index, "table", e.Index, s.Imported.Tables+count(s.Table))
		case binary.KindMemory:
			within(r, index, "memory", e.Index, s.Imported.Memories+count(s.Memory))
		case binary.KindGlobal:
			within(r, index, "global", e.Index, s.AllGlobals())
		default:
			r.FailAt(index, "exports something of unknown kind %d", e.Kind)
		}
		s.Exports = append(s.Exports, e)
	}
}

// readName reads the name of an import or export, which must leave the host's
// own alone.
func readName(r *binary.Reader) string {
	at, name := r.Offset(), string(r.Name())
	if strings.HasPrefix(name, ReservedPrefix) {
		r.FailAt(at, "uses the name %q: names that begin with %s belong to the host", shorten([]byte(name)), ReservedPrefix)
	}
	return name
}

// shorten keeps a name in a message short.
func shorten(name []byte) string {
	const enough = 64
	if len(name) > enough {
		return string(name[:enough]) + "…"
	}
	return string(name)
}

// count is how many memories or tables of its own a module has.
func count(own *binary.Limits) int {
	if own != nil {
		return 1
	}
	return 0
}

func (s *scanner) readStart(r *binary.Reader) {
	at, index := r.Offset(), r.U32()
	within(r, at, "function", index, len(s.functions))
	if t, ok := s.Signature(index); ok && t != (binary.Signature{}) {
		r.FailAt(at, "names function %d, which takes %v instead of nothing", index, t)
	}
	s.Start = &index
}
