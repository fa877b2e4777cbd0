package preflight

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// Outline is what the scan of a module found. It holds parts of the module's
// bytes, which nobody may change.
type Outline struct {
	Sections []Section
	Imports  []Import
	Exports  []Export
	Globals  []Global       // of the module's own
	Memory   *binary.Limits // nil if the module has none of its own
	Table    *binary.Limits // nil if the module has none of its own
	Start    bool           // the module has a start function
	Manifest []byte         // of the custom section, nil if there is none
	ABI      *int32         // what the export abi.ExportABI returns, nil unless it only returns a constant

	// Code is the module without its custom sections, but for function names
	// that are sound: what wazero is given.
	Code []byte

	module    []byte
	types     []uint32 // where in module the parameters of each type begin
	functions []uint32 // type of each function, the imported ones first
	imported  imported
}

// imported counts what a module imports, which comes first in each index space.
type imported struct{ functions, tables, memories, globals int }

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

// Signature returns the type of a function by its index in the module.
func (o *Outline) Signature(index uint32) (binary.Signature, bool) {
	if uint64(index) >= uint64(len(o.functions)) {
		return binary.Signature{}, false
	}
	params, results, ok := o.values(o.functions[index])
	return binary.Signature{Params: string(params), Results: string(results)}, ok
}

// values returns the types of a function type's parameters and results.
func (o *Outline) values(index uint32) (params, results []byte, ok bool) {
	if uint64(index) >= uint64(len(o.types)) {
		return nil, nil, false
	}
	at := int(o.types[index])
	r := binary.NewReader(o.module[at:], at)
	params = r.Take(r.U32())
	results = r.Take(r.U32())
	return params, results, r.Err() == nil
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
