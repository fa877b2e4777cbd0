package fuel

import (
	"math"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// order holds the sections as they follow each other in a module.
var order = []binary.SectionID{
	binary.TypeSection, binary.ImportSection, binary.FunctionSection, binary.TableSection, binary.MemorySection,
	binary.GlobalSection, binary.ExportSection, binary.StartSection, binary.ElementSection,
	binary.DataCountSection, binary.CodeSection, binary.DataSection,
}

// kind says how a kind of section is rewritten. Most are vectors, whose entries are
// written one by one.
type kind struct {
	name  string
	entry func(*rewriter, *binary.Reader, *writer)
	whole func(*rewriter, *binary.Reader, *writer) // instead of entry, where the section is no vector

	// add writes this many entries at the end.
	add   func(*rewriter, *writer)
	added uint32
}

var kinds = [...]kind{
	binary.TypeSection:      {name: "type", entry: (*rewriter).function, add: (*rewriter).addType, added: 1},
	binary.ImportSection:    {name: "import", entry: (*rewriter).importEntry, add: (*rewriter).addImport, added: 1},
	binary.FunctionSection:  {name: "function", entry: (*rewriter).declaration},
	binary.TableSection:     {name: "table", entry: (*rewriter).table},
	binary.MemorySection:    {name: "memory", entry: (*rewriter).memory},
	binary.GlobalSection:    {name: "global", entry: (*rewriter).global, add: (*rewriter).addGlobals, added: 2},
	binary.ExportSection:    {name: "export", entry: (*rewriter).export, add: (*rewriter).addExports, added: 2},
	binary.StartSection:     {name: "start", whole: (*rewriter).start},
	binary.ElementSection:   {name: "element", entry: (*rewriter).element},
	binary.CodeSection:      {name: "code", entry: (*rewriter).body},
	binary.DataSection:      {name: "data", entry: (*rewriter).data},
	binary.DataCountSection: {name: "data count", whole: func(_ *rewriter, r *binary.Reader, out *writer) { out.u32(r.U32()) }},
}

// mutable marks a global that can be set.
const mutable = 1

func (w *rewriter) function(r *binary.Reader, out *writer) {
	if form := r.Byte(); form != binary.FunctionType {
		r.Fail("holds a type of kind %#x, which is no function", form)
	}
	params := values(r)
	at := r.Offset()
	results := values(r)
	if len(results) > 1 {
		r.FailAt(at, "holds a function of %d results; build without multi-value", len(results))
	}
	w.types = append(w.types, binary.Signature{Params: params, Results: results})
	out.byte(binary.FunctionType)
	out.name(params)
	out.name(results)
}

func values(r *binary.Reader) string {
	at, b := r.Offset(), r.Take(uint32(r.Count("values", math.MaxInt)))
	for _, t := range b {
		if !binary.IsValueType(t) {
			r.FailAt(at, "holds value type %#x, which is none of i32, i64, f32 and f64", t)
		}
	}
	return string(b)
}

// addType adds the type of Refuel.
func (w *rewriter) addType(out *writer) {
	out.byte(binary.FunctionType, 1, binary.I64, 1, binary.I64)
}

func (w *rewriter) importEntry(r *binary.Reader, out *writer) {
	at, module, name, k := r.Offset(), string(r.Name()), string(r.Name()), r.Byte()
	if strings.HasPrefix(module, Reserved) || strings.HasPrefix(name, Reserved) {
		r.FailAt(at, "imports %q.%q; names that begin with %s are reserved", module, name, Reserved)
	}
	out.name(module)
	out.name(name)
	out.byte(k)
	switch k {
	case binary.KindFunction:
		w.declaration(r, out)
		w.imported++
	case binary.KindTable:
		w.table(r, out)
	case binary.KindMemory:
		w.memory(r, out)
	case binary.KindGlobal:
		w.globalType(r, out)
	default:
		r.FailAt(at, "imports something of unknown kind %d", k)
	}
}

func (w *rewriter) addImport(out *writer) {
	out.name(Module)
	out.name(Refuel)
	out.byte(binary.KindFunction)
	out.u32(uint32(len(w.types)))
}

// declaration is a function's type.
func (w *rewriter) declaration(r *binary.Reader, out *writer) {
	t := within(r, "type", uint32(len(w.types)))
	w.functions = append(w.functions, t)
	out.u32(t)
}

func (w *rewriter) table(r *binary.Reader, out *writer) {
	if t := r.Byte(); t != binary.FuncRef {
		r.Fail("holds a table of type %#x, which is not of functions", t)
	}
	w.tables++
	out.byte(binary.FuncRef)
	limits(r, out)
}

func (w *rewriter) memory(r *binary.Reader, out *writer) {
	w.memories++
	limits(r, out)
}

func limits(r *binary.Reader, out *writer) {
	l := r.Limits()
	if !l.Bounded {
		out.byte(0)
		out.u32(l.Min)
		return
	}
	out.byte(1)
	out.u32(l.Min)
	out.u32(l.Max)
}

func (w *rewriter) global(r *binary.Reader, out *writer) {
	own := w.globals // an initialiser may only name a global before it
	w.globalType(r, out)
	w.expression(r, out, own)
}

func (w *rewriter) globalType(r *binary.Reader, out *writer) {
	at, t, mutability := r.Offset(), r.Byte(), r.Byte()
	if !binary.IsValueType(t) || mutability > mutable {
		r.FailAt(at, "holds a global of type %#x and mutability %#x", t, mutability)
	}
	w.globals++
	out.byte(t, mutability)
}

// addGlobals adds Fuel, then Stack.
func (w *rewriter) addGlobals(out *writer) {
	out.byte(binary.I64, mutable)
	out.constant(binary.I64Const, 0)
	out.op(binary.End)
	out.byte(binary.I32, mutable)
	out.constant(binary.I32Const, int64(w.options.Stack))
	out.op(binary.End)
}

func (w *rewriter) fuel() uint32  { return w.globals }
func (w *rewriter) stack() uint32 { return w.globals + 1 }

// moved is the new index of a function. Refuel stands behind the module's own imports.
func (w *rewriter) moved(function uint32) uint32 {
	if function < w.imported {
		return function
	}
	return function + 1
}

// functionIndex reads the index of a function and writes its new one.
func (w *rewriter) functionIndex(r *binary.Reader, out *writer) {
	out.u32(w.moved(within(r, "function", uint32(len(w.functions)))))
}

// within reads an index of something of which the module has n.
func within(r *binary.Reader, what string, n uint32) uint32 {
	at, i := r.Offset(), r.U32()
	if i >= n {
		r.FailAt(at, "names %s %d of %d", what, i, n)
	}
	return i
}

func (w *rewriter) export(r *binary.Reader, out *writer) {
	at, name, k := r.Offset(), string(r.Name()), r.Byte()
	if strings.HasPrefix(name, Reserved) {
		r.FailAt(at, "exports %q; names that begin with %s are reserved", name, Reserved)
	}
	out.name(name)
	out.byte(k)
	switch k {
	case binary.KindFunction:
		w.functionIndex(r, out)
	case binary.KindTable:
		out.u32(within(r, "table", w.tables))
	case binary.KindMemory:
		out.u32(within(r, "memory", w.memories))
	case binary.KindGlobal:
		out.u32(within(r, "global", w.globals))
	default:
		r.FailAt(at, "exports something of unknown kind %d", k)
	}
}

func (w *rewriter) addExports(out *writer) {
	out.name(Fuel)
	out.byte(binary.KindGlobal)
	out.u32(w.fuel())
	out.name(Stack)
	out.byte(binary.KindGlobal)
	out.u32(w.stack())
}

func (w *rewriter) start(r *binary.Reader, out *writer) { w.functionIndex(r, out) }

// The kinds of segments that are set when the module is instantiated.
const (
	active   = 0
	activeIn = 2 // a table or memory that it names
)

func (w *rewriter) element(r *binary.Reader, out *writer) {
	at, k := r.Offset(), r.U32()
	out.u32(k)
	switch k {
	case active:
		w.expression(r, out, w.globals)
	case activeIn:
		out.u32(within(r, "table", w.tables))
		w.expression(r, out, w.globals)
		out.byte(r.Byte())
	default:
		r.FailAt(at, "holds a segment of kind %d; only active ones of functions are supported", k)
	}
	n := r.Count("functions", math.MaxInt)
	out.u32(uint32(n))
	for range n {
		w.functionIndex(r, out)
	}
}

func (w *rewriter) data(r *binary.Reader, out *writer) {
	at, k := r.Offset(), r.U32()
	out.u32(k)
	switch k {
	case active:
	case activeIn:
		out.u32(within(r, "memory", w.memories))
	default:
		r.FailAt(at, "holds a segment of kind %d; only active ones are supported", k)
	}
	w.expression(r, out, w.globals)
	out.sized(r.Take(r.U32()))
}

// expression copies a constant expression, which may name the globals below this index.
func (w *rewriter) expression(r *binary.Reader, out *writer, globals uint32) {
	for r.Err() == nil {
		in := r.Instruction()
		switch in.Op {
		case binary.I32Const, binary.I64Const, binary.F32Const, binary.F64Const, binary.End:
		case binary.GlobalGet:
			if in.Index >= globals {
				r.FailAt(in.Offset, "names global %d of %d", in.Index, globals)
			}
		default:
			r.FailAt(in.Offset, "holds %v in a constant expression", in.Op)
		}
		out.bytes(in.Raw)
		if in.Op == binary.End {
			return
		}
	}
}
