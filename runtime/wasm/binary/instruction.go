package binary

// Instruction is one instruction of a function's body or of a constant
// expression.
type Instruction struct {
	Op     Opcode
	Offset int    // in the module
	Raw    []byte // all of it, part of the module

	// Index is what a branch, call, local or global instruction names: a label,
	// function, local or global; with call_indirect it is a type, and with
	// br_table the outermost of its labels.
	Index uint32

	// Labels is how many labels br_table has, the default not counted.
	Labels int

	// Block is the type of a block, loop or if: NoResult or a value type.
	Block byte
}

// Instruction reads an instruction that guests may use. Of any other it says the
// name and what to build without.
func (r *Reader) Instruction() Instruction {
	start, in := r.b, Instruction{Offset: r.offset}
	in.Op = r.opcode()
	row := in.Op.row()
	if r.err == nil && row.name == "" {
		r.FailAt(in.Offset, "uses %v, which does not exist", in.Op)
	} else if r.err == nil && row.refused != nil {
		r.FailAt(in.Offset, "uses %s (%s), which is not supported; %s", row.name, row.refused.name, row.refused.hint)
	}
	r.immediate(&in, row.immediate)
	if r.err != nil {
		return Instruction{Offset: in.Offset}
	}
	in.Raw = start[: r.offset-in.Offset : r.offset-in.Offset]
	return in
}

func (r *Reader) opcode() Opcode {
	op := Opcode(r.Byte())
	if op != prefixMisc {
		return op
	}
	if sub := r.U32(); sub < 0x100 {
		return op<<8 | Opcode(sub)
	}
	return op<<8 | 0xff // no instruction has this number
}

// immediate reads what follows the opcode.
func (r *Reader) immediate(in *Instruction, kind immediate) {
	switch kind {
	case immIndex:
		in.Index = r.U32()
	case immBlock:
		in.Block = r.blockType()
	case immLabels:
		in.Labels = r.Count("labels", len(r.b))
		for range in.Labels + 1 {
			in.Index = max(in.Index, r.U32())
		}
	case immIndirect:
		in.Index = r.U32()
		r.zero("calls through table", r.U32())
	case immMemory:
		r.zero("uses memory", uint32(r.Byte()))
	case immMemories:
		r.zero("uses memory", uint32(r.Byte()))
		r.zero("uses memory", uint32(r.Byte()))
	case immAddress:
		r.U32() // alignment
		r.U32() // offset
	case immI32:
		r.skipSigned(5)
	case immI64:
		r.skipSigned(10)
	case immF32:
		r.Take(4)
	case immF64:
		r.Take(8)
	}
}

// zero holds a module to its only table and memory.
func (r *Reader) zero(what string, index uint32) {
	if index != 0 {
		r.Fail("%s %d, but there is only one", what, index)
	}
}

func (r *Reader) blockType() byte {
	offset, t := r.offset, r.Byte()
	if t != NoResult && !IsValueType(t) {
		r.FailAt(offset, "has a block of type %#x: none and one of i32, i64, f32 and f64 are supported; build without multi-value and reference types", t)
	}
	return t
}
