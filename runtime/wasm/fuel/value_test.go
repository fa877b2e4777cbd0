package fuel_test

// instruction takes operands and leaves one value.
type instruction struct {
	code     []byte
	operands []byte
}

// instructions are all that compute, by the type of what they leave.
var instructions = func() map[byte][]instruction {
	m := map[byte][]instruction{}
	add := func(first, last, result byte, operands ...byte) {
		for op := int(first); op <= int(last); op++ {
			m[result] = append(m[result], instruction{[]byte{byte(op)}, operands})
		}
	}
	add(0x45, 0x45, i32, i32)
	add(0x46, 0x4f, i32, i32, i32)
	add(0x50, 0x50, i32, i64)
	add(0x51, 0x5a, i32, i64, i64)
	add(0x5b, 0x60, i32, f32, f32)
	add(0x61, 0x66, i32, f64, f64)
	for i, t := range valueTypes {
		unary := [][2]byte{{0x67, 0x69}, {0x79, 0x7b}, {0x8b, 0x91}, {0x99, 0x9f}}[i]
		two := [][2]byte{{0x6a, 0x78}, {0x7c, 0x8a}, {0x92, 0x98}, {0xa0, 0xa6}}[i]
		add(unary[0], unary[1], t, t)
		add(two[0], two[1], t, t, t)
	}
	for i, c := range [][2]byte{ // the conversions from 0xa7 on
		{i32, i64}, {i32, f32}, {i32, f32}, {i32, f64}, {i32, f64},
		{i64, i32}, {i64, i32}, {i64, f32}, {i64, f32}, {i64, f64}, {i64, f64},
		{f32, i32}, {f32, i32}, {f32, i64}, {f32, i64}, {f32, f64},
		{f64, i32}, {f64, i32}, {f64, i64}, {f64, i64}, {f64, f32},
		{i32, f32}, {i64, f64}, {f32, i32}, {f64, i64},
		{i32, i32}, {i32, i32}, {i64, i64}, {i64, i64}, {i64, i64},
	} {
		add(0xa7+byte(i), 0xa7+byte(i), c[0], c[1])
	}
	for i := range byte(8) { // the conversions that saturate
		result, operand := []byte{i32, i64}[i/4], []byte{f32, f64}[i/2%2]
		m[result] = append(m[result], instruction{[]byte{0xfc, i}, []byte{operand}})
	}
	return m
}()

// loads are by the type of what they leave.
var loads = map[byte][]byte{
	i32: {0x28, 0x2c, 0x2d, 0x2e, 0x2f}, i64: {0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35}, f32: {0x2a}, f64: {0x2b},
}

// value makes code that leaves a value of a type, or nothing if it is 0.
func (g *generator) value(t byte, depth int) {
	if t == 0 {
		return
	}
	if depth <= 0 {
		g.leaf(t)
		return
	}
	switch g.n(12) {
	case 0, 1, 2:
		g.leaf(t)
	case 3:
		g.address(depth - 1)
		g.op(loads[t][g.n(len(loads[t]))], 0, byte(g.n(100)))
		g.canonical(t)
	case 4:
		g.value(t, depth-1)
		g.value(t, depth-1)
		g.value(i32, depth-1)
		g.op(0x1b)
	case 5:
		g.block(t, depth-1)
	case 6:
		g.ifElse(t, depth-1)
	case 7:
		g.callFor(t, depth-1)
	case 8:
		if t == i32 {
			g.sizes(depth - 1)
			return
		}
		g.compute(t, depth)
	default:
		g.compute(t, depth)
	}
}

// compute makes an instruction whose operands are values.
func (g *generator) compute(t byte, depth int) {
	in := instructions[t][g.n(len(instructions[t]))]
	for _, operand := range in.operands {
		g.value(operand, depth-1)
		g.canonical(operand)
	}
	g.op(in.code...)
}

// leaf makes a constant, or reads a local or a global.
func (g *generator) leaf(t byte) {
	switch g.n(3) {
	case 1:
		for i := range g.locals {
			if i := (i + g.n(4)) % len(g.locals); g.locals[i] == t {
				g.index(0x20, i)
				return
			}
		}
		g.zero(t)
	case 2:
		g.op(0x23, globalOf(t))
	default:
		g.constant(t)
	}
}

// callFor calls a function for its result, if there is one of type t.
func (g *generator) callFor(t byte, depth int) {
	first := g.n(len(g.functions))
	for i := range g.functions {
		f := (first + i) % len(g.functions)
		if g.signature[g.functions[f]].result == t {
			g.invoke(f, depth)
			return
		}
	}
	g.leaf(t)
}

// sizes asks for or changes the memory's size.
func (g *generator) sizes(depth int) {
	if g.n(2) == 0 {
		g.op(0x3f, 0)
		return
	}
	g.value(i32, depth)
	if g.n(4) > 0 {
		g.op(0x41, 1, 0x71)
	}
	g.op(0x40, 0)
}
