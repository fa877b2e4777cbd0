package fuel_test

import (
	"encoding/binary"
	"math"
)

// The value types.
const (
	i32 = 0x7f
	i64 = 0x7e
	f32 = 0x7d
	f64 = 0x7c
)

var valueTypes = []byte{i32, i64, f32, f64}

// signature is the type of a generated function; result is 0 if it has none.
type signature struct {
	params []byte
	result byte
}

// generator makes valid modules out of bytes: the same bytes, the same module, and any
// bytes will do. A module ends by itself: its first global counts down at each function's
// entry and each loop's head, and at 0 ways out are taken.
type generator struct {
	source    []byte
	signature []signature
	functions []int // the signature of each, the import first

	b      []byte // the body
	locals []byte // types; the last four are scratch, one of each type
	labels []byte // types of the blocks around, 0 for none or for a loop
	result byte
}

// n draws a number below max. Without bytes left it is 0, which ends things.
func (g *generator) n(max int) int {
	if len(g.source) == 0 {
		return 0
	}
	v := int(g.source[0])
	g.source = g.source[1:]
	return v % max
}

func (g *generator) number() int64 {
	special := []int64{0, 1, -1, 2, 63, 64, 65535, 65536, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	if i := g.n(len(special) + 4); i < len(special) {
		return special[i]
	}
	v := int64(0)
	for range 1 + g.n(8) {
		v = v<<8 | int64(g.n(256))
	}
	return v
}

func (g *generator) op(b ...byte) { g.b = append(g.b, b...) }

func (g *generator) index(op byte, i int) { g.b = unsigned(append(g.b, op), i) }

func unsigned(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(v)) }

func signed(b []byte, v int64) []byte {
	for ; v < -64 || v > 63; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v)&0x7f)
}

func section(id byte, entries ...[]byte) []byte {
	b := unsigned(nil, len(entries))
	for _, e := range entries {
		b = append(b, e...)
	}
	return append(unsigned([]byte{id}, len(b)), b...)
}

func vector(b []byte) []byte { return append(unsigned(nil, len(b)), b...) }

// generate makes a module. It exports its functions as a, b, c …, its memory as m and its
// globals as A to D, and imports one function.
func generate(source []byte) ([]byte, []signature) {
	g := &generator{source: source, signature: []signature{{[]byte{i32}, i32}, {nil, i64}}}
	for range 1 + g.n(4) {
		s := signature{}
		for range g.n(4) {
			s.params = append(s.params, valueTypes[g.n(4)])
		}
		if i := g.n(5); i < 4 {
			s.result = valueTypes[i]
		}
		g.signature = append(g.signature, s)
	}
	g.functions = []int{0}
	for range 1 + g.n(5) {
		g.functions = append(g.functions, 1+g.n(len(g.signature)-1))
	}
	module := append([]byte("\x00asm\x01\x00\x00\x00"), g.outline()...)
	var bodies [][]byte
	var exported []signature
	for _, t := range g.functions[1:] {
		bodies = append(bodies, g.function(g.signature[t]))
		exported = append(exported, g.signature[t])
	}
	module = append(module, section(10, bodies...)...)
	return append(module, section(11, append([]byte{0, 0x41, 8, 0x0b}, vector([]byte("some data"))...))...), exported
}

// outline makes all sections before the code.
func (g *generator) outline() []byte {
	var types, functions, exports, elements [][]byte
	for _, s := range g.signature {
		t := append([]byte{0x60}, vector(s.params)...)
		if s.result == 0 {
			types = append(types, append(t, 0))
		} else {
			types = append(types, append(t, 1, s.result))
		}
	}
	for i, t := range g.functions[1:] {
		functions = append(functions, unsigned(nil, t))
		exports = append(exports, []byte{1, 'a' + byte(i), 0, byte(i + 1)})
		elements = append(elements, []byte{byte(i)})
	}
	exports = append(exports, []byte{1, 'm', 2, 0})
	var globals [][]byte
	for i, initial := range [][]byte{{0x41, 0xe4, 0}, {0x42, 7}, {0x43, 0, 0, 0x80, 0x3f}, {0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}} {
		globals = append(globals, append(append([]byte{valueTypes[i], 1}, initial...), 0x0b))
		exports = append(exports, []byte{1, 'A' + byte(i), 3, byte(i)})
	}
	segment := append([]byte{0, 0x41, 1, 0x0b}, unsigned(nil, len(elements))...)
	for _, e := range elements {
		segment = append(segment, e...)
	}
	b := append(section(1, types...), section(2, []byte{1, 'h', 1, 'f', 0, 0})...)
	b = append(append(b, section(3, functions...)...), section(4, []byte{0x70, 0, 8})...)
	b = append(append(b, section(5, []byte{1, 1, 4})...), section(6, globals...)...)
	return append(append(b, section(7, exports...)...), section(9, segment)...)
}

// function makes a body.
func (g *generator) function(s signature) []byte {
	g.b, g.labels, g.result = nil, []byte{s.result}, s.result
	g.locals = append([]byte(nil), s.params...)
	var groups [][]byte
	for range g.n(4) {
		t := valueTypes[g.n(4)]
		g.locals = append(g.locals, t)
		groups = append(groups, []byte{1, t})
	}
	for _, t := range valueTypes {
		g.locals = append(g.locals, t)
		groups = append(groups, []byte{1, t})
	}
	g.tick()
	g.op(0x04, 0x40) // if nothing is left of the count
	g.zero(s.result)
	g.op(0x0f, 0x0b)
	g.statements(5)
	g.value(s.result, 5)
	g.op(0x0b)
	head := unsigned(nil, len(groups))
	for _, group := range groups {
		head = append(head, group...)
	}
	return vector(append(head, g.b...))
}

// tick counts down and leaves whether the count is below 0.
func (g *generator) tick() {
	g.op(0x23, 0, 0x41, 1, 0x6b, 0x24, 0, 0x23, 0, 0x41, 0, 0x48)
}

func (g *generator) zero(t byte) {
	switch t {
	case i32:
		g.op(0x41, 0)
	case i64:
		g.op(0x42, 0)
	case f32:
		g.op(0x43, 0, 0, 0, 0)
	case f64:
		g.op(0x44, 0, 0, 0, 0, 0, 0, 0, 0)
	}
}

func (g *generator) constant(t byte) {
	switch v := g.number(); t {
	case i32:
		g.b = signed(append(g.b, 0x41), int64(int32(v)))
	case i64:
		g.b = signed(append(g.b, 0x42), v)
	case f32:
		g.b = binary.LittleEndian.AppendUint32(append(g.b, 0x43), math.Float32bits(float32(v)/3))
	case f64:
		g.b = binary.LittleEndian.AppendUint64(append(g.b, 0x44), math.Float64bits(float64(v)/3))
	}
}

func (g *generator) statements(depth int) {
	for range g.n(depth + 1) {
		g.statement(depth - 1)
	}
}

func (g *generator) statement(depth int) {
	switch t := valueTypes[g.n(4)]; g.n(14) {
	case 0:
		g.op(0x01)
	case 1:
		i := g.n(len(g.locals))
		g.value(g.locals[i], depth)
		g.index(0x21, i)
	case 2:
		if t == i32 {
			t = i64 // the count is not to be touched
		}
		g.value(t, depth)
		g.op(0x24, globalOf(t))
	case 3:
		g.store(t, depth)
	case 4, 5:
		g.block(0, depth)
	case 6:
		g.loop(depth)
	case 7:
		g.value(t, depth)
		g.op(0x1a)
	case 8:
		g.branch(depth)
	case 9:
		g.bulk(depth)
	case 10:
		g.leave(depth)
	case 11:
		g.call(1+g.n(len(g.functions)-1), depth)
	default:
		g.ifElse(0, depth)
	}
}

// globalOf is the global of a type. That of i32 is the count.
func globalOf(t byte) byte { return i32 - t }

// block makes a block of a type, with all that may stand in one.
func (g *generator) block(t byte, depth int) {
	g.op(0x02, blockType(t))
	g.labels = append(g.labels, t)
	g.statements(depth)
	g.value(t, depth)
	g.end()
}

func (g *generator) end() {
	g.op(0x0b)
	g.labels = g.labels[:len(g.labels)-1]
}

func blockType(t byte) byte {
	if t == 0 {
		return 0x40
	}
	return t
}

// loop makes a loop that is left when the count is 0.
func (g *generator) loop(depth int) {
	g.op(0x02, 0x40, 0x03, 0x40)
	g.labels = append(g.labels, 0, 0)
	g.tick()
	g.op(0x0d, 1)
	g.statements(depth)
	if g.n(2) == 1 {
		g.value(i32, depth)
		g.op(0x0d, 0)
	}
	g.end()
	g.end()
}

func (g *generator) ifElse(t byte, depth int) {
	g.value(i32, depth)
	g.op(0x04, blockType(t))
	g.labels = append(g.labels, t)
	g.statements(depth)
	g.value(t, depth)
	if t != 0 || g.n(2) == 1 {
		g.op(0x05)
		g.statements(depth)
		g.value(t, depth)
	}
	g.end()
}

// branch makes a br_if, or a br_table among labels of one type.
func (g *generator) branch(depth int) {
	to := g.n(len(g.labels))
	t := g.labels[len(g.labels)-1-to]
	g.value(t, depth)
	g.value(i32, depth)
	g.index(0x0d, to)
	if t != 0 {
		g.op(0x1a)
	}
}

// leave makes code after which nothing runs, in a block of its own, and code that never runs.
func (g *generator) leave(depth int) {
	g.ifElse(0, 0)
	g.b = g.b[:len(g.b)-1] // open again
	g.labels = append(g.labels, 0)
	to := g.n(len(g.labels))
	t := g.labels[len(g.labels)-1-to]
	switch g.n(5) {
	case 0:
		g.value(t, depth)
		g.index(0x0c, to)
	case 1:
		g.value(g.result, depth)
		g.op(0x0f)
	case 2:
		g.op(0x00)
	default:
		g.value(t, depth)
		g.value(i32, depth)
		g.table(t, to)
	}
	g.statements(depth)
	g.end()
}

// table makes a br_table to labels of type t, one of which is known.
func (g *generator) table(t byte, known int) {
	var targets []byte
	for i := range g.labels {
		if g.labels[len(g.labels)-1-i] == t && g.n(3) > 0 {
			targets = append(targets, byte(i))
		}
	}
	g.index(0x0e, len(targets))
	g.op(targets...)
	g.b = unsigned(g.b, known)
}

func (g *generator) address(depth int) {
	g.value(i32, depth)
	if g.n(8) > 0 { // mostly inside
		g.op(0x41, 0xff, 0xff, 0, 0x71)
	}
}

func (g *generator) store(t byte, depth int) {
	g.address(depth)
	g.value(t, depth)
	g.canonical(t)
	ops := map[byte][]byte{i32: {0x36, 0x3a, 0x3b}, i64: {0x37, 0x3c, 0x3d, 0x3e}, f32: {0x38}, f64: {0x39}}[t]
	g.op(ops[g.n(len(ops))], 0, byte(g.n(100)))
}

func (g *generator) bulk(depth int) {
	g.address(depth)
	if g.n(2) == 0 {
		g.value(i32, depth)
	} else {
		g.address(depth)
	}
	g.address(depth)
	if g.n(2) == 0 {
		g.op(0xfc, 11, 0)
	} else {
		g.op(0xfc, 10, 0, 0)
	}
}

// call makes a call, direct or not, and drops its result.
func (g *generator) call(f, depth int) {
	s := g.signature[g.functions[f]]
	g.invoke(f, depth)
	if s.result != 0 {
		g.op(0x1a)
	}
}

func (g *generator) invoke(f, depth int) {
	for _, t := range g.signature[g.functions[f]].params {
		g.value(t, depth-1)
	}
	if g.n(3) > 0 {
		g.index(0x10, f)
		return
	}
	g.value(i32, depth-1)
	g.op(0x41, 7, 0x71)
	g.index(0x11, g.functions[f])
	g.op(0)
}

// canonical replaces a NaN on the stack, whose bits engines may choose.
func (g *generator) canonical(t byte) {
	scratch := len(g.locals) - 4 + int(globalOf(t))
	compare := map[byte]byte{f32: 0x5b, f64: 0x61}[t]
	if compare == 0 {
		return
	}
	g.index(0x22, scratch)
	g.zero(t)
	g.index(0x20, scratch)
	g.index(0x20, scratch)
	g.op(compare, 0x1b)
}
