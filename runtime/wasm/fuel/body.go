package fuel

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// What running costs, in units. An instruction costs 1, but for those that only give
// code its structure; so a unit is about a nanosecond of compiled code, and a few where it
// misses the caches.
const (
	entryCost     = 8 // of a function, besides
	localsPerUnit = 4 // which a function sets to zero
	growCost      = 64
	bytesPerUnit  = 8  // of memory that is copied or filled
	growShift     = 13 // a new page of memory costs 64 KiB / bytesPerUnit
	bytesShift    = 3
)

// What a frame takes, in bytes: that much for each parameter, local and operand,
// and for what the compiler puts there itself. A function that calls nothing is on top of
// the stack, so a small frame of one is not counted.
const (
	slotSize   = 8
	extraSlots = 8
	leafFrame  = 1 << 10
)

// mode says what a region pays before it runs.
type mode byte

const (
	charged mode = iota
	checked      // charged, and the guest looks whether anything is left
	dead         // nothing: it never runs
)

// label is a block that has begun and not ended.
type label struct {
	op       binary.Opcode // Block also for the function itself
	result   byte
	height   int  // of the operand stack below it
	targeted bool // some branch leads to it
}

// body is the state of one function. Its instructions are collected in regions that
// run as a whole or not at all but for traps, so that each needs one charge.
type body struct {
	*rewriter
	locals uint32 // parameters included

	out    writer // finished regions
	region writer
	mode   mode
	cost   int64

	labels    []label
	height    int // of the operand stack
	maxHeight int
	calls     bool
}

// body rewrites the body of a function.
func (w *rewriter) body(function int, r binary.Reader, out *writer) {
	params, results := w.Type(w.TypeOf(function))
	result := binary.NoResult
	if len(results) > 0 {
		result = results[0]
	}
	b := body{rewriter: w, locals: uint32(len(params)), mode: checked}
	whole := writer{}
	n := r.U32()
	whole.u32(n + 2) // the groups of locals, with ours added
	for range n {
		b.locals += whole.count(&r)
		whole.byte(r.Byte())
	}
	whole.byte(1, binary.I64, 1, binary.I32)
	b.cost = entryCost + int64(b.locals)/localsPerUnit
	b.push(binary.Block, result)
	for len(b.labels) > 0 {
		b.instruction(r.Instruction())
	}
	b.flush(dead)

	frame := (int64(b.locals) + int64(b.maxHeight) + extraSlots) * slotSize // the most that it needs
	if !b.calls && frame <= leafFrame {
		whole.bytes(b.out.b)
		out.sized(whole.b)
		return
	}
	whole.index(binary.GlobalGet, b.stack())
	whole.constant(binary.I32Const, frame)
	whole.op(i32Sub)
	whole.index(binary.LocalTee, b.length())
	whole.index(binary.GlobalSet, b.stack())
	whole.index(binary.LocalGet, b.length())
	whole.constant(binary.I32Const, 0)
	whole.op(i32LessSigned, binary.If, noResult, binary.Unreachable, binary.End)

	whole.op(binary.Block) // to whose end lead all ways out of the function
	whole.byte(result)
	whole.bytes(b.out.b)

	whole.index(binary.GlobalGet, b.stack())
	whole.constant(binary.I32Const, frame)
	whole.op(i32Add)
	whole.index(binary.GlobalSet, b.stack())
	whole.op(binary.End)
	out.sized(whole.b)
}

// Our own locals, behind the function's.
func (b *body) left() uint32   { return b.locals }     // i64, for fuel
func (b *body) length() uint32 { return b.locals + 1 } // i32, for operands

// flush ends a region; the next one pays as mode says.
func (b *body) flush(next mode) {
	if b.mode == checked || b.mode == charged && b.cost > 0 {
		b.out.index(binary.GlobalGet, b.fuel())
		b.out.constant(binary.I64Const, b.cost)
		b.out.op(i64Sub)
		b.pay(b.mode)
	}
	b.out.bytes(b.region.b)
	b.region.b, b.cost, b.mode = b.region.b[:0], 0, next
}

// pay takes the new fuel from the operand stack.
func (b *body) pay(m mode) {
	if m == checked {
		b.out.index(binary.LocalTee, b.left())
	}
	b.out.index(binary.GlobalSet, b.fuel())
	if m == checked {
		b.out.index(binary.LocalGet, b.left())
		b.out.constant(binary.I64Const, 0)
		b.out.op(i64LessSigned, binary.If, noResult)
		b.out.index(binary.LocalGet, b.left())
		b.out.index(binary.Call, uint32(b.Imported.Functions))
		b.out.index(binary.GlobalSet, b.fuel())
		b.out.op(binary.End)
	}
}
