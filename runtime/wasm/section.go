package wasm

// This file reads the sections of a module, one function each. Their layout is
// that of https://www.w3.org/TR/wasm-core-2/#binary-modules, less what features
// leaves out.

import "github.com/wasmproxy/wasmproxy/abi"

func (m *module) readTypes(r *reader) {
	const function = 0x60
	for range r.count("types", maxTypes) {
		if b := r.byte(); b != function {
			r.fail("holds a type of kind %#x, which is no function", b)
		}
		params := valueTypes(r)
		m.types = append(m.types, signature{params, valueTypes(r)})
	}
}

func valueTypes(r *reader) string {
	types := r.take(uint32(r.count("values", maxParams)))
	for _, t := range types {
		if valueNames[t] == "" {
			r.fail("holds value type %#x, which is none of i32, i64, f32 and f64", t)
		}
	}
	return string(types)
}

func (m *module) readImports(r *reader) {
	for range r.count("imports", maxImports) {
		i := Import{Module: r.name(), Name: r.name(), kind: r.byte()}
		switch i.kind {
		case kindFunction:
			m.functions = append(m.functions, r.u32())
			i.signature, _ = m.function(uint32(len(m.functions) - 1))
			i.Type = i.signature.String()
		case kindTable:
			i.Type = "(table)"
			r.byte()
			limits(r)
		case kindMemory:
			i.Type = "(memory)"
			limits(r)
		case kindGlobal:
			i.Type = "(global)"
			r.take(2)
		default:
			r.fail("imports something of unknown kind %d", i.kind)
		}
		m.imports = append(m.imports, i)
	}
	m.imported = len(m.functions)
}

func limits(r *reader) pages {
	switch flag := r.byte(); flag {
	case 0:
		return pages{min: r.u32()}
	case 1:
		return pages{min: r.u32(), max: r.u32(), bounded: true}
	default:
		r.fail("holds limits of kind %#x: shared and 64-bit ones are not supported", flag)
		return pages{}
	}
}

func (m *module) readFunctions(r *reader) {
	for range r.count("functions", maxFunctions) {
		m.functions = append(m.functions, r.u32())
	}
}

// funcref is the value type of references to functions.
const funcref = 0x70

func (m *module) readTable(r *reader) {
	for range r.count("tables", 1) {
		if t := r.byte(); t != funcref {
			r.fail("holds a table of type %#x, which is not of functions", t)
		}
		if m.table = limits(r); m.table.min > maxTable {
			r.fail("holds a table of %d entries, the limit is %d", m.table.min, maxTable)
		}
	}
}

func (m *module) readMemory(r *reader) {
	for range r.count("memories", 1) {
		p := limits(r)
		m.memory = &p
	}
}

func (m *module) readGlobals(r *reader) {
	for range r.count("globals", maxGlobals) {
		r.take(2) // type and mutability
		expression(r)
	}
}

// expression passes a constant expression.
func expression(r *reader) {
	const i32, i64, f32, f64, global, refNull, refFunc, end = 0x41, 0x42, 0x43, 0x44, 0x23, 0xd0, 0xd2, 0x0b
	for r.err == nil {
		switch op := r.byte(); op {
		case end:
			return
		case i32:
			r.skipSigned(5)
		case i64:
			r.skipSigned(10)
		case f32:
			r.take(4)
		case f64:
			r.take(8)
		case global, refFunc:
			r.u32()
		case refNull:
			if t := r.byte(); t != funcref {
				r.fail("holds a null reference of type %#x", t)
			}
		default:
			r.fail("holds instruction %#x in a constant expression", op)
		}
	}
}

func (m *module) readExports(r *reader) {
	for range r.count("exports", maxExports) {
		m.exports = append(m.exports, export{r.name(), r.byte(), r.u32()})
	}
}

// readElements takes active segments only: the others need reference types,
// and wazero panics over them when those are switched off.
func (m *module) readElements(r *reader) {
	const active, activeInTable, activeExpressions = 0, 2, 4
	entries := 0
	for range r.count("segments", maxElements) {
		kind := r.u32()
		switch kind {
		case active, activeExpressions:
			expression(r)
		case activeInTable:
			r.u32()
			expression(r)
			r.byte()
		default:
			r.fail("holds a segment of kind %d; only active ones are supported", kind)
		}
		n := r.count("entries", maxTable)
		if entries += n; entries > maxTable {
			r.fail("sets more than %d table entries", maxTable)
		}
		for range n {
			if kind == activeExpressions {
				expression(r)
			} else {
				r.u32()
			}
		}
	}
}

func (m *module) readCode(r *reader) {
	version, ok := m.export(abi.ExportABI)
	for i := range r.count("functions", maxFunctions) {
		body := r.take(r.u32())
		if len(body) > maxBody {
			r.fail("holds a function of %d bytes, the limit is %d", len(body), maxBody)
		}
		inner := reader{b: body}
		readLocals(&inner)
		if inner.err != nil {
			r.fail("holds function %d, which %w", m.imported+i, inner.err)
		}
		if ok && m.imported+i == int(version.index) {
			m.constant = constant(inner.b)
		}
	}
}

func readLocals(r *reader) {
	total := uint64(0)
	for range r.count("groups of locals", maxLocals) {
		n, t := r.u32(), r.byte()
		if total += uint64(n); total > maxLocals {
			r.fail("has more than %d locals", maxLocals)
		}
		if valueNames[t] == "" {
			r.fail("has a local of type %#x", t)
		}
	}
}

// constant returns the number that a body of "i32.const n" and "end" returns.
func constant(body []byte) *int32 {
	const i32Const, end = 0x41, 0x0b
	r := reader{b: body}
	if r.byte() != i32Const {
		return nil
	}
	var v int32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= int32(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if b&0x40 != 0 && shift < 28 {
			v |= -1 << (shift + 7)
		}
		break
	}
	if r.byte() != end || r.err != nil || len(r.b) > 0 {
		return nil
	}
	return &v
}

// readData takes active segments only; passive ones would survive a reset of
// the memory, and no supported toolchain makes them.
func (m *module) readData(r *reader) {
	const active, activeInMemory = 0, 2
	for range r.count("segments", maxData) {
		switch kind := r.u32(); kind {
		case active:
		case activeInMemory:
			r.u32()
		default:
			r.fail("holds a segment of kind %d; only active ones are supported", kind)
		}
		expression(r)
		r.take(r.u32())
	}
}
