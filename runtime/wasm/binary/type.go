package binary

// ValueType is the type of a value.
type ValueType = byte

// The value types that guests may use.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
	F32 ValueType = 0x7d
	F64 ValueType = 0x7c
)

// NoResult is the type of a block that leaves nothing.
const NoResult byte = 0x40

// FuncRef is the type of references to functions, which only tables hold.
const FuncRef byte = 0x70

// FunctionType opens the type of a function.
const FunctionType byte = 0x60

// IsValueType reports whether guests may use a type.
func IsValueType(t byte) bool { return t >= F64 && t <= I32 }

// SectionID is the number of a kind of section.
type SectionID = byte

// The sections of a module.
const (
	CustomSection SectionID = iota
	TypeSection
	ImportSection
	FunctionSection
	TableSection
	MemorySection
	GlobalSection
	ExportSection
	StartSection
	ElementSection
	CodeSection
	DataSection
	DataCountSection
)

// Kind is what an import or export is.
type Kind = byte

// The kinds of imports and exports.
const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// Limits are those of a memory, in pages of 64 KiB, or of a table, in entries.
type Limits struct {
	Min, Max uint32
	Bounded  bool // Max was given
}

// Limits reads the limits of a memory or table.
func (r *Reader) Limits() Limits {
	switch offset, flag := r.offset, r.Byte(); flag {
	case 0:
		return Limits{Min: r.U32()}
	case 1:
		return Limits{Min: r.U32(), Max: r.U32(), Bounded: true}
	default:
		r.FailAt(offset, "holds limits of kind %#x: shared and 64-bit ones are not supported", flag)
		return Limits{}
	}
}
