package fuel

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// Instructions that are written, and one that costs nothing.
const (
	noResult      = binary.Opcode(binary.NoResult)
	nop           = binary.Opcode(0x01)
	i32NotEqual   = binary.Opcode(0x47)
	i32LessSigned = binary.Opcode(0x48)
	i64LessSigned = binary.Opcode(0x53)
	i32Add        = binary.Opcode(0x6a)
	i32Sub        = binary.Opcode(0x6b)
	i64Sub        = binary.Opcode(0x7d)
	i64Mul        = binary.Opcode(0x7e)
	i64ShiftLeft  = binary.Opcode(0x86)
	i64ShiftRight = binary.Opcode(0x88)
	i64ExtendI32  = binary.Opcode(0xad) // unsigned
)

// instruction takes one instruction to the region, and ends the region where the
// next instruction may run more or less often than this one.
func (b *body) instruction(in binary.Instruction) {
	switch in.Op {
	case binary.Br, binary.BrIf, binary.BrTable, binary.Return, binary.Unreachable:
		b.jump(in)
		return
	case binary.Call, binary.CallIndirect:
		b.call(in)
		return
	case binary.MemoryCopy, binary.MemoryFill, binary.MemoryGrow:
		b.bulk(in)
		return
	}
	b.region.bytes(in.Raw)
	switch in.Op {
	case binary.Block:
		b.push(in.Op, in.Block)
	case binary.Loop:
		b.push(in.Op, in.Block)
		b.flush(checked)
		b.cost = 1 // or a loop of nothing but its branch would be cheap
	case binary.If:
		b.cost++
		b.move(-1)
		b.push(in.Op, in.Block)
		b.flush(charged)
	case binary.Else:
		b.height = b.labels[len(b.labels)-1].height
		b.flush(charged)
	case binary.End:
		last := len(b.labels) - 1
		l := b.labels[last]
		b.labels, b.height = b.labels[:last], l.height
		if l.result != binary.NoResult {
			b.move(1)
		}
		// Where only one way leads past the end, the region goes on: nothing branches to the end of a loop.
		if l.op == binary.If || l.op == binary.Block && l.targeted {
			b.flush(charged)
		}
	default:
		if in.Op != nop {
			b.cost++
		}
		b.move(in.Op.Change())
	}
}

// move notes that the operand stack has this many operands more. In code that never
// runs it may have none to take.
func (b *body) move(n int) {
	b.height += n
	if len(b.labels) > 0 {
		b.height = max(b.height, b.labels[len(b.labels)-1].height)
	}
	b.maxHeight = max(b.maxHeight, b.height)
}

func (b *body) push(op binary.Opcode, result byte) {
	b.labels = append(b.labels, label{op: op, result: result, height: b.height})
}

func (b *body) jump(in binary.Instruction) {
	b.cost++
	switch in.Op {
	case binary.Return:
		outermost := uint32(len(b.labels) - 1)
		b.region.index(binary.Br, outermost) // to where the frame is given back
		b.target(outermost)
	case binary.BrTable:
		b.region.bytes(in.Raw)
		labels := binary.NewReader(in.Raw[1:], 0)
		for range labels.U32() + 1 {
			b.target(labels.U32())
		}
	case binary.Br, binary.BrIf:
		b.region.bytes(in.Raw)
		b.target(in.Index)
	default:
		b.region.bytes(in.Raw)
	}
	if in.Op == binary.BrIf {
		b.move(-1)
		b.flush(charged)
		return
	}
	b.height = b.labels[len(b.labels)-1].height
	b.flush(dead)
}

// target notes where a branch leads.
func (b *body) target(depth uint32) { b.labels[len(b.labels)-1-int(depth)].targeted = true }

func (b *body) call(in binary.Instruction) {
	b.calls = true
	b.cost++
	callee := in.Index
	if in.Op == binary.Call {
		b.region.index(binary.Call, b.moved(in.Index))
		callee = b.TypeOf(int(in.Index))
	} else {
		b.region.bytes(in.Raw)
		b.move(-1)
	}
	params, results := b.Type(callee)
	b.move(-len(params))
	b.move(len(results))
}

// bulk copies an instruction whose time depends on an operand, and charges for it when
// it is done: what it may touch is bounded by the memory's size, and a trap
// of its own is to come before one for want of fuel.
func (b *body) bulk(in binary.Instruction) {
	b.cost++
	b.region.index(binary.LocalTee, b.length()) // bytes or pages
	if in.Op == binary.MemoryGrow {
		// It leaves the old size in length, and on the stack what the new pages cost: nothing if there
		// were not added, since growing failed.
		b.cost += growCost
		b.region.op(i64ExtendI32)
		b.region.index(binary.LocalSet, b.left())
		b.region.index(binary.LocalGet, b.length())
		b.region.bytes(in.Raw)
		b.region.index(binary.LocalTee, b.length())
		b.region.constant(binary.I32Const, -1)
		b.region.op(i32NotEqual, i64ExtendI32)
		b.region.index(binary.LocalGet, b.left())
		b.region.op(i64Mul)
		b.region.constant(binary.I64Const, growShift)
		b.region.op(i64ShiftLeft)
	} else {
		b.region.bytes(in.Raw)
		b.region.index(binary.LocalGet, b.length())
		b.region.op(i64ExtendI32)
		b.region.constant(binary.I64Const, bytesShift)
		b.region.op(i64ShiftRight)
	}
	b.region.index(binary.LocalSet, b.left())
	b.move(in.Op.Change())
	b.flush(charged)
	b.out.index(binary.GlobalGet, b.fuel())
	b.out.index(binary.LocalGet, b.left())
	b.out.op(i64Sub)
	b.pay(checked)
	if in.Op == binary.MemoryGrow {
		b.out.index(binary.LocalGet, b.length())
	}
}
