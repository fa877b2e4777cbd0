package preflight

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// Error is why a module was refused.
type Error struct {
	Section  string // "code"; "" if it is the module as a whole
	Function int    // index of the function, -1 if it is in no function
	Offset   int    // in bytes from the beginning of the module
	Reason   string // what is wrong and, where there is something, what its author can do
}

// Error says where, what, and what to do.
func (e *Error) Error() string {
	where := "module"
	if e.Offset == 0 {
		return where + " " + e.Reason
	}
	if e.Section != "" {
		where = e.Section + " section"
	}
	where += fmt.Sprintf(" at offset %#x: ", e.Offset)
	if e.Function >= 0 {
		where += fmt.Sprintf("function %d ", e.Function)
	}
	return where + e.Reason
}

// scanner reads one module.
type scanner struct {
	*Outline
	last     int // index in binary.Order of the last section that was no custom one
	function int // whose body is being read, -1 if none
	bodies   int
	segments int // data segments, -1 before they are counted
}

// sections are read by their numbers.
var sections = [...]struct {
	name string
	read func(*scanner, *binary.Reader)
}{
	binary.CustomSection:    {"custom", (*scanner).readCustom},
	binary.TypeSection:      {"type", (*scanner).readTypes},
	binary.ImportSection:    {"import", (*scanner).readImports},
	binary.FunctionSection:  {"function", (*scanner).readFunctions},
	binary.TableSection:     {"table", (*scanner).readTable},
	binary.MemorySection:    {"memory", (*scanner).readMemory},
	binary.GlobalSection:    {"global", (*scanner).readGlobals},
	binary.ExportSection:    {"export", (*scanner).readExports},
	binary.StartSection:     {"start", (*scanner).readStart},
	binary.ElementSection:   {"element", (*scanner).readElements},
	binary.DataCountSection: {"data count", (*scanner).readDataCount},
	binary.CodeSection:      {"code", (*scanner).readCode},
	binary.DataSection:      {"data", (*scanner).readData},
}

// Scan reads a module and refuses it with an *Error, or returns its outline. With
// an error the outline holds what was read before it and is not nil.
func Scan(module []byte) (*Outline, error) {
	s := &scanner{Outline: &Outline{Module: module}, last: -1, function: -1, segments: -1}
	fail := func(offset int, format string, args ...any) (*Outline, error) {
		return s.Outline, &Error{Function: -1, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	if len(module) > abi.MaxModule {
		return fail(0, "has %d bytes, the limit is %d", len(module), abi.MaxModule)
	}
	if !bytes.HasPrefix(module, []byte(binary.Magic)) {
		return fail(0, "does not begin with \\0asm and version 1: it is not a WebAssembly module")
	}
	for r := binary.NewReader(module[len(binary.Magic):], len(binary.Magic)); r.Len() > 0; {
		start := r.Offset()
		id, inner := r.Byte(), r.Sub()
		if r.Err() != nil {
			return fail(r.ErrOffset(), "%v", r.Err())
		}
		// Each but the custom ones comes at most once and in order, so that everybody reads the same module.
		order := slices.Index(binary.Order[:], id)
		switch {
		case id == binary.CustomSection:
		case order < 0:
			return fail(start, "has a section of unknown kind %d", id)
		case order == s.last:
			return fail(start, "has a second %s section", sections[id].name)
		case order < s.last:
			return fail(start, "has its %s section after the %s section", sections[id].name, sections[binary.Order[s.last]].name)
		default:
			s.last = order
			s.Sections = append(s.Sections, Section{sections[id].name, inner.Len()})
		}
		sections[id].read(s, &inner)
		inner.End()
		if inner.Err() != nil {
			return s.Outline, &Error{
				Section: sections[id].name, Function: s.function, Offset: inner.ErrOffset(), Reason: inner.Err().Error(),
			}
		}
	}
	if own := len(s.functions) - s.Imported.Functions; own != s.bodies {
		return fail(len(module), "declares %d functions and has the code of %d", own, s.bodies)
	}
	if s.segments > 0 {
		return fail(len(module), "counts %d data segments and has none", s.segments)
	}
	return s.Outline, nil
}

// readCustom keeps the manifest and, for wazero's stack traces, names.
func (s *scanner) readCustom(r *binary.Reader) {
	size, name := r.Len(), shorten(r.Name())
	if r.Err() != nil {
		return
	}
	content := r.Take(uint32(r.Len()))
	if len(s.Sections) == maxSections {
		r.Fail("is one of more than %d sections", maxSections)
		return
	}
	s.Sections = append(s.Sections, Section{fmt.Sprintf("%q", name), size})
	switch {
	case name == abi.ManifestSection && s.Manifest != nil:
		r.Fail("is a second %s", name)
	case name == abi.ManifestSection:
		s.Manifest = content
	case name == "name" && s.Names == nil && len(content) <= maxNames:
		s.Names = content
	}
}
