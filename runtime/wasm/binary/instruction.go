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
	in.Op = Opcode(r.Byte())
	if in.Op == prefixMisc {
		in.Op = in.Op<<8 | Opcode(min(r.U32(), 0xff)) // no instruction has the number 0xff
	}
	row := in.Op.row()
	if r.err == nil && row.name == "" {
		r.FailAt(in.Offset, "uses %v, which does not exist", in.Op)
	} else if r.err == nil && row.refused != nil {
		r.FailAt(in.Offset, "uses %s (%s), which is not supported; %s", row.name, row.refused.name, row.refused.hint)
	}
	switch row.immediate {
	case immIndex:
		in.Index = r.U32()
	case immBlock:
		offset := r.offset
		in.Block = r.Byte()
		if in.Block != NoResult && !IsValueType(in.Block) {
			r.FailAt(offset, "has a block of type %#x: none and one of i32, i64, f32 and f64 are supported; build without multi-value and reference types", in.Block)
		}
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
	if r.err != nil {
		return Instruction{Offset: in.Offset}
	}
	in.Raw = start[: r.offset-in.Offset : r.offset-in.Offset]
	return in
}

// zero holds a module to its only table and memory.
func (r *Reader) zero(what string, index uint32) {
	if index != 0 {
		r.Fail("%s %d, but there is only one", what, index)
	}
}
