package preflight

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// This file estimates how long wazero's compiler takes for a function, in units of half a
// microsecond of a slow processor. Each figure is what many instructions of the kind took in
// one function, with what the metering adds to them.
const (
	functionWork = 40
	callWork     = 7
	operandWork  = 2  // of a parameter of a call
	memoryWork   = 12 // of a load or store, which leaves the function if it is out of bounds
	divideWork   = 16 // likewise
	convertWork  = 30 // of a float to an integer; 150 bytes of native code
	indirectWork = 60
	growWork     = 360
	bulkWork     = 460
	globalsUnit  = 2 // mutable globals are a unit of each function

	localsUnit = 2 // locals at each jump: the compiler hands them on where ways meet

	// manyExits is how many instructions of one function may trap or call by a table before
	// each of the others takes the compiler twice as long: 70,000 stores took 6.9 µs each,
	// and 700 of them 3.4.
	manyExits = 2_000

	// jumpsUnit is how many pairs of jumps of one function are a unit: the compiler goes from
	// every jump up through the blocks that come before it.
	jumpsUnit = 60
)

// jumpsOf is what the compiler makes of one instruction, in jumps.
func jumpsOf(op binary.Opcode) int {
	switch op {
	case binary.Block, binary.Br, binary.Return:
		return 1
	case binary.BrIf:
		return 2
	case binary.If:
		return 3
	case binary.Loop:
		return 6 // the metering's among them
	}
	return 0
}

// weigh adds what an instruction takes to the work of its function.
func (b *body) weigh(in binary.Instruction) {
	b.own++
	switch op := in.Op; {
	case op == binary.BrTable:
		b.jump(in.Labels + 1)
	case op == binary.Call:
		params, _ := b.Type(b.functions[in.Index])
		b.own += callWork + operandWork*len(params)
	case op == binary.CallIndirect:
		params, _ := b.Type(in.Index)
		b.own += operandWork * len(params)
		b.exit(indirectWork)
	case op >= firstLoad && op <= lastStore:
		b.exit(memoryWork)
	case divides(op):
		b.exit(divideWork)
	case converts(op):
		b.exit(convertWork)
	case op == binary.MemoryGrow:
		b.own += growWork
	case op == binary.MemoryCopy, op == binary.MemoryFill:
		b.own += bulkWork
	default:
		b.jump(jumpsOf(op))
	}
}

// exit adds an instruction at which the function may end with a trap.
func (b *body) exit(work int) {
	if b.exits++; b.exits > manyExits {
		work *= 2
	}
	b.own += work
}

func (b *body) jump(n int) {
	b.jumps += n
	b.own += n * b.locals / localsUnit
}

// checkWork refuses a function, which begins at an offset, that takes too long to compile.
func (b *body) checkWork(r *binary.Reader, at int) {
	b.own += b.jumps * b.jumps / jumpsUnit
	b.work += b.own
	switch {
	case b.own > maxFunctionWork:
		r.FailAt(at, "takes too long to compile: %d units of work, the limit is %d (it has %d locals and %d jumps); split it", b.own, maxFunctionWork, b.locals, b.jumps)
	case b.work > maxWork:
		r.FailAt(at, "and those before it take too long to compile: %d units of work, the limit is %d; leave something out", b.work, maxWork)
	}
}

const (
	firstLoad = binary.Opcode(0x28)
	lastStore = binary.Opcode(0x3e)
)

// divides reports whether an instruction divides integers.
func divides(op binary.Opcode) bool {
	return between(op, 0x6d, 0x70) || between(op, 0x7f, 0x82)
}

// converts reports whether an instruction makes an integer of a float.
func converts(op binary.Opcode) bool {
	return between(op, 0xa8, 0xab) || between(op, 0xae, 0xb1) || between(op, 0xfc00, 0xfc07)
}

func between(op, first, last binary.Opcode) bool { return first <= op && op <= last }
