package binary

import "fmt"

// Opcode is the number of an instruction: its byte, or the prefix 0xfc in the
// upper byte and the number that follows in the lower one.
type Opcode uint16

// The instructions that a body's structure and its cost depend on.
const (
	Unreachable  Opcode = 0x00
	Block        Opcode = 0x02
	Loop         Opcode = 0x03
	If           Opcode = 0x04
	Else         Opcode = 0x05
	End          Opcode = 0x0b
	Br           Opcode = 0x0c
	BrIf         Opcode = 0x0d
	BrTable      Opcode = 0x0e
	Return       Opcode = 0x0f
	Call         Opcode = 0x10
	CallIndirect Opcode = 0x11
	LocalGet     Opcode = 0x20
	LocalSet     Opcode = 0x21
	LocalTee     Opcode = 0x22
	GlobalGet    Opcode = 0x23
	GlobalSet    Opcode = 0x24
	MemoryGrow   Opcode = 0x40
	I32Const     Opcode = 0x41
	I64Const     Opcode = 0x42
	F32Const     Opcode = 0x43
	F64Const     Opcode = 0x44
	MemoryCopy   Opcode = 0xfc0a
	MemoryFill   Opcode = 0xfc0b
)

const prefixMisc = 0xfc

// String is the instruction's name in the text format.
func (op Opcode) String() string {
	if name := op.row().name; name != "" {
		return name
	}
	return fmt.Sprintf("instruction %#x", uint16(op))
}

// row describes one instruction. Rows without a name are no instructions.
type row struct {
	name      string
	immediate immediate
	refused   *feature // nil if guests may use it
	change    int8
}

// immediate is what follows an opcode.
type immediate uint8

const (
	_           immediate = iota
	immIndex              // a label, function, local or global
	immBlock              // a block type
	immLabels             // the labels of br_table
	immIndirect           // a type and a table
	immMemory             // a memory
	immMemories           // two memories
	immAddress            // alignment and offset
	immI32
	immI64
	immF32
	immF64
)

func (op Opcode) row() *row { return instructions.row(op) }

// Change is how many operands the instruction leaves more than it takes. It is 0 for calls, and
// for what gives code its structure.
func (op Opcode) Change() int { return int(op.row().change) }

// feature is an extension of WebAssembly that guests may not use, and what
// their authors can do.
type feature struct{ name, hint string }

var (
	exceptions         = &feature{"exceptions", "build without -fwasm-exceptions"}
	tailCalls          = &feature{"tail calls", "build with -mno-tail-call"}
	functionReferences = &feature{"function references", "build without them"}
	garbageCollection  = &feature{"garbage collection", "build without it"}
	referenceTypes     = &feature{"reference types", "build with -mno-reference-types"}
	simd               = &feature{"SIMD", "build without -msimd128"}
	threads            = &feature{"threads", "build without -pthread and -matomics"}
	segments           = &feature{"bulk memory: segments", "build without shared memory and wasm-opt's --memory-packing"}
	tables             = &feature{"bulk memory: tables", "build without it"}
)
