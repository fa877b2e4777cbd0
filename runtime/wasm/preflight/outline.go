package preflight

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// Outline is what the scan of a module found. It holds parts of the module's
// bytes, which must not be changed.
type Outline struct {
	Sections []Section
	Imports  []Import
	Exports  []Export
	Globals  []Global       // of the module's own
	Memory   *binary.Limits // nil if the module has none of its own
	Table    *binary.Limits // nil if the module has none of its own
	Start    *uint32        // the index of the start function, nil if there is none
	Manifest []byte         // of the custom section, nil if there is none
	Names    []byte         // of the first name section of at most 1 MiB, as it is; nil if there is none
	ABI      *int32         // what the export abi.ExportABI returns, nil unless it only returns a constant

	Imported Imported
	Module   []byte // all of it

	types     []uint32 // where in module the parameters of each type begin
	functions []uint32 // type of each function, the imported ones first
}

// Imported counts what a module imports, which comes first in each index space.
type Imported struct{ Functions, Tables, Memories, Globals int }

// Section is one section of a module.
type Section struct {
	Name string // "code", or the name of a custom section in quotation marks
	Size int    // bytes of its content
}

// Import is one thing that a module wants of the host.
type Import struct {
	Module, Name string
	Kind         binary.Kind
	Signature    binary.Signature // of a function
}

// Export is one thing that a module shows to the host.
type Export struct {
	Name  string
	Kind  binary.Kind
	Index uint32
}

// Global is the type of a global variable.
type Global struct {
	Type    binary.ValueType
	Mutable bool
}

// Functions is how many functions the module has, imported ones included.
func (o *Outline) Functions() int { return len(o.functions) }

// Types is how many types of functions the module has.
func (o *Outline) Types() int { return len(o.types) }

// AllGlobals is how many globals the module has, imported ones included.
func (o *Outline) AllGlobals() int { return o.Imported.Globals + len(o.Globals) }

// Mutable returns the indices of the module's own globals that can change.
func (o *Outline) Mutable() (indices []uint32) {
	for n, g := range o.Globals {
		if g.Mutable {
			indices = append(indices, uint32(o.Imported.Globals+n))
		}
	}
	return indices
}

// Signature returns the type of a function by its index in the module.
func (o *Outline) Signature(index uint32) (binary.Signature, bool) {
	if uint64(index) >= uint64(len(o.functions)) || o.functions[index] >= uint32(len(o.types)) {
		return binary.Signature{}, false
	}
	params, results := o.Type(o.functions[index])
	return binary.Signature{Params: string(params), Results: string(results)}, true
}

// TypeOf returns the index of a function's type. There is a function of this index.
func (o *Outline) TypeOf(function int) uint32 { return o.functions[function] }

// Type returns the types of parameters and results of a function type by its index. There is
// one of this index.
func (o *Outline) Type(index uint32) (params, results []byte) {
	r := binary.NewReader(o.Module[o.types[index]:], 0)
	return r.Take(r.U32()), r.Take(r.U32())
}

// Export finds an export by its name.
func (o *Outline) Export(name string) (Export, bool) {
	for _, e := range o.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}
