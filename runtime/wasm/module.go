package wasm

import (
	"bytes"
	"fmt"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Limits of a module. wazero's decoder and compiler allocate by what a module
// claims, so a module is held to these before wazero sees it. The largest that
// real guests of Go, TinyGo, Rust and C were seen to need are well below.
const (
	maxTypes     = 10_000
	maxParams    = 1_000 // of one function type
	maxImports   = 64
	maxFunctions = 20_000
	maxTable     = 65_536 // entries, and entries that element segments set
	maxGlobals   = 10_000
	maxExports   = 128
	maxElements  = 10_000 // element segments
	maxBody      = 512 << 10
	maxLocals    = 2_000 // of one function
	maxData      = 65_536
	maxNames     = 1 << 20 // bytes of the name section
)

const magic = "\x00asm\x01\x00\x00\x00"

// module is what the scan of a module's bytes found. It holds parts of them.
type module struct {
	sections  []Section
	types     []signature
	imports   []Import // State is not filled in
	functions []uint32 // type of each function, the imported ones first
	imported  int      // how many of functions are imported
	exports   []export
	memory    *pages
	table     pages
	start     bool
	manifest  []byte // of the custom section, nil if there is none
	named     bool   // code holds a name section
	constant  *int32 // what the export abi.ExportABI returns, where it only returns a constant

	// code is the module without its custom sections, but for function names
	// that are sound: what wazero is given.
	code []byte
}

// Section is one section of a module.
type Section struct {
	Name string // "code", or the name of a custom section in quotation marks
	Size int    // bytes of its content
}

type export struct {
	name  string
	kind  byte
	index uint32
}

// pages are the limits of a memory, in pages of 64 KiB, or those of a table.
type pages struct {
	min, max uint32
	bounded  bool // max was given
}

// The kinds of imports and exports.
const (
	kindFunction byte = iota
	kindTable
	kindMemory
	kindGlobal
)

// sectionKinds are the sections by their numbers. A custom section, number 0, is
// read apart.
var sectionKinds = [...]struct {
	name string
	read func(*module, *reader)
}{
	1:  {"type", (*module).readTypes},
	2:  {"import", (*module).readImports},
	3:  {"function", (*module).readFunctions},
	4:  {"table", (*module).readTable},
	5:  {"memory", (*module).readMemory},
	6:  {"global", (*module).readGlobals},
	7:  {"export", (*module).readExports},
	8:  {"start", func(m *module, r *reader) { m.start = true; r.u32() }},
	9:  {"element", (*module).readElements},
	10: {"code", (*module).readCode},
	11: {"data", (*module).readData},
	12: {"data count", func(_ *module, r *reader) { r.u32() }},
}

// scan reads a module's outline. Whatever it accepts, wazero's decoder reads the
// same way and within memory of the module's own order. It does not look into
// function bodies; wazero validates those.
func scan(b []byte) (*module, error) {
	if len(b) > MaxModule {
		return nil, fmt.Errorf("module has %d bytes, the limit is %d", len(b), MaxModule)
	}
	if !bytes.HasPrefix(b, []byte(magic)) {
		return nil, fmt.Errorf("not a WebAssembly module: it does not begin with \\0asm and version 1")
	}
	m := &module{code: append(make([]byte, 0, len(b)), magic...)}
	for r := (&reader{b: b[len(magic):]}); len(r.b) > 0; {
		if err := m.readSection(r); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *module) readSection(r *reader) error {
	whole := r.b
	id, content := r.byte(), r.take(r.u32())
	if r.err != nil {
		return fmt.Errorf("module %w", r.err)
	}
	whole = whole[:len(whole)-len(r.b)]
	switch {
	case id == 0:
		return m.readCustom(whole, content)
	case int(id) >= len(sectionKinds):
		return fmt.Errorf("module has a section of unknown kind %d", id)
	}
	kind := sectionKinds[id]
	m.sections = append(m.sections, Section{kind.name, len(content)})
	m.code = append(m.code, whole...)
	inner := reader{b: content}
	kind.read(m, &inner)
	inner.end()
	if inner.err != nil {
		return fmt.Errorf("%s section %w", kind.name, inner.err)
	}
	return nil
}

// readCustom keeps the manifest and, for wazero's stack traces, function names.
func (m *module) readCustom(whole, content []byte) error {
	r := reader{b: content}
	name := r.name()
	if r.err != nil {
		return fmt.Errorf("custom section %w", r.err)
	}
	m.sections = append(m.sections, Section{fmt.Sprintf("%q", name), len(content)})
	switch {
	case name == abi.ManifestSection && m.manifest != nil:
		return fmt.Errorf("module has more than one custom section %s", name)
	case name == abi.ManifestSection:
		m.manifest = r.b
	case name == "name" && !m.named && len(r.b) <= maxNames && soundNames(r.b):
		m.named = true // a second one is an error to wazero
		m.code = append(m.code, whole...)
	}
	return nil
}

// soundNames reports whether a name section is as the specification says, so
// that wazero reads no further than its end and allocates no more than it holds.
func soundNames(b []byte) bool {
	const moduleName, functionNames, localNames = 0, 1, 2
	for r := (&reader{b: b}); len(r.b) > 0; {
		kind := r.byte()
		inner := reader{b: r.take(r.u32())}
		switch kind {
		case moduleName:
			inner.name()
		case functionNames:
			readNames(&inner)
		case localNames:
			for range inner.count("functions", maxNames) {
				inner.u32()
				readNames(&inner)
			}
		default:
			inner.b = nil
		}
		inner.end()
		if r.err != nil || inner.err != nil {
			return false
		}
	}
	return true
}

func readNames(r *reader) {
	for range r.count("names", maxNames) {
		r.u32()
		r.name()
	}
}

// function returns the type of a function by its index in the module.
func (m *module) function(index uint32) (signature, bool) {
	if uint64(index) >= uint64(len(m.functions)) || uint64(m.functions[index]) >= uint64(len(m.types)) {
		return signature{}, false
	}
	return m.types[m.functions[index]], true
}

// export finds an export by its name.
func (m *module) export(name string) (export, bool) {
	for _, e := range m.exports {
		if e.name == name {
			return e, true
		}
	}
	return export{}, false
}
