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
	case between(op, 0x28, 0x3e): // a load or store
		b.exit(memoryWork)
	case between(op, 0x6d, 0x70), between(op, 0x7f, 0x82): // division of integers
		b.exit(divideWork)
	case between(op, 0xa8, 0xab), between(op, 0xae, 0xb1), between(op, 0xfc00, 0xfc07): // a float to an integer
		b.exit(convertWork)
	case op == binary.MemoryGrow:
		b.own += growWork
	case op == binary.MemoryCopy, op == binary.MemoryFill:
		b.own += bulkWork
	case op == binary.Block, op == binary.Br, op == binary.Return:
		b.jump(1)
	case op == binary.BrIf:
		b.jump(2)
	case op == binary.If:
		b.jump(3)
	case op == binary.Loop:
		b.jump(6) // the metering's among them
	}
}

// exit adds an instruction at which the function may end with a trap.
func (b *body) exit(work int) {
	if b.exits++; b.exits > manyExits {
		work *= 2
	}
	b.own += work
}

// jump adds what the compiler makes of an instruction, in jumps.
func (b *body) jump(n int) {
	b.jumps += n
	b.own += n * b.locals / localsUnit
}

func between(op, first, last binary.Opcode) bool { return first <= op && op <= last }
