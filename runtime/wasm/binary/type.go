package binary

import "strings"

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

// Order holds the sections as they follow each other in a module. A custom one may come anywhere.
var Order = [...]SectionID{
	TypeSection, ImportSection, FunctionSection, TableSection, MemorySection, GlobalSection,
	ExportSection, StartSection, ElementSection, DataCountSection, CodeSection, DataSection,
}

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
	offset := r.offset
	switch flag := r.Byte(); flag {
	case 0:
		return Limits{Min: r.U32()}
	case 1:
		return Limits{Min: r.U32(), Max: r.U32(), Bounded: true}
	default:
		r.FailAt(offset, "holds limits of kind %#x: shared and 64-bit ones are not supported", flag)
		return Limits{}
	}
}

// Signature is the type of a function. Its strings hold one byte for each value,
// as WebAssembly encodes value types, so that == compares types.
type Signature struct{ Params, Results string }

// String returns the type in the notation of the ABI's documents, such as
// "(i32, i64) -> i32".
func (s Signature) String() string {
	text := "(" + valueList(s.Params) + ")"
	if s.Results != "" {
		text += " -> " + valueList(s.Results)
	}
	return text
}

func valueList(types string) string {
	names := make([]string, len(types))
	for i := range types {
		names[i] = valueNames[types[i]]
	}
	return strings.Join(names, ", ")
}

var valueNames = map[ValueType]string{I32: "i32", I64: "i64", F32: "f32", F64: "f64"}
