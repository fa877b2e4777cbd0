package wasm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// Import is one thing that a module wants of the host.
type Import struct {
	Module, Name string
	Type         string // "(i32, i32) -> i32", or what it is if it is no function
	State        ImportState
}

// String returns the import's name, printable.
func (i *Import) String() string { return plugin.Printable(i.Module+"."+i.Name, maxTail) }

// ImportState says what the host makes of an import.
type ImportState string

// The states of an import.
const (
	Served  ImportState = "served"
	Denied  ImportState = "denied" // links, and answers every call with an error of WASI
	Absent  ImportState = "absent" // optional to the plugin; answers UNSUPPORTED
	Unknown ImportState = "unknown"
	// Undeclared needs a capability that the manifest does not declare, and answers DENIED.
	Undeclared ImportState = "undeclared"
	Mistyped   ImportState = "mistyped"
)

// check says what keeps a module from being a plugin whose memory ends at limit
// pages, one line for each thing. optional are the host functions that it can do without.
func check(m *preflight.Outline, optional []string, limit uint32) []string {
	_, problems := checkImports(m, optional)
	_, start := m.Export("_start")
	_, initialize := m.Export(abi.ExportInitialize)
	if start && !initialize { // its other exports do not work before or after main
		command := "it is a command, which runs once and ends (it exports _start and not " + abi.ExportInitialize + "); " +
			"build it as a library: go and tinygo build -buildmode=c-shared, Rust crate-type = [\"cdylib\"], clang -mexec-model=reactor"
		return append([]string{command}, problems...)
	}
	for _, row := range abi.Exports {
		e, ok := m.Export(row.Name)
		got, _ := m.Signature(e.Index)
		want := signatureOf(row.Params, row.Result)
		switch {
		case !ok && row.Required:
			problems = append(problems, fmt.Sprintf("it does not export %s %s", row.Name, want))
		case ok && e.Kind != binary.KindFunction:
			problems = append(problems, fmt.Sprintf("its export %s is not a function", row.Name))
		case ok && got != want:
			problems = append(problems, fmt.Sprintf("its export %s has type %s instead of %s", row.Name, got, want))
		}
	}
	if _, ok := m.Export(abi.ExportManifest); !ok && m.Manifest == nil {
		problems = append(problems, fmt.Sprintf("it has neither a custom section %s nor the export %s", abi.ManifestSection, abi.ExportManifest))
	}
	return append(problems, checkMemory(m, limit)...)
}

// checkImports says what the host makes of each import, and what is wrong with them.
func checkImports(m *preflight.Outline, optional []string) (imports []Import, problems []string) {
	for _, want := range m.Imports {
		i := Import{Module: want.Module, Name: want.Name, State: Served}
		switch want.Kind {
		case binary.KindTable:
			i.Type = "(table)"
		case binary.KindMemory:
			i.Type = "(memory)"
		case binary.KindGlobal:
			i.Type = "(global)"
		default:
			i.Type = want.Signature.String()
		}
		host, known := hostFunctions[i.Module][i.Name]
		switch {
		case !known && isOptional(want, optional):
			i.State = Absent
		case !known || want.Kind != binary.KindFunction:
			i.State = Unknown
			problems = append(problems, unknownImport(&i, m.ABI))
		case want.Signature != host.signature:
			i.State = Mistyped
			problems = append(problems, fmt.Sprintf("it imports %s as %s, but it is %s", &i, i.Type, host.signature))
		case host.denied:
			i.State = Denied
		}
		imports = append(imports, i)
	}
	return imports, problems
}

// isOptional reports whether a stub can stand in for a host function that this host
// does not have: it answers with one number, or with none.
func isOptional(i preflight.Import, optional []string) bool {
	if i.Module != abi.Module || i.Kind != binary.KindFunction || !slices.Contains(optional, i.Name) {
		return false
	}
	r := i.Signature.Results
	return r == "" || r == string([]byte{binary.I32}) || r == string([]byte{binary.I64})
}

// unknownImport says that the host does not have an import. version is that of the ABI that the module was built for; nil if it
// shows by running the module alone.
func unknownImport(i *Import, version *int32) string {
	problem := fmt.Sprintf("it imports %s %s, which this host does not have", i, i.Type)
	if !strings.HasPrefix(i.Module, "wp") {
		return problem
	}
	if version != nil && uint32(*version)>>16 == abi.Major && *version > abi.Version {
		problem += fmt.Sprintf("; it was built for %s %d.%d", abi.Module, abi.Major, *version&0xffff)
	}
	return problem + fmt.Sprintf("; this host serves %s %d.%d, a newer wasmproxy may serve it", abi.Module, abi.Major, abi.Minor)
}

func checkMemory(m *preflight.Outline, limit uint32) []string {
	e, ok := m.Export(abi.ExportMemory)
	switch {
	case !ok || e.Kind != binary.KindMemory || m.Memory == nil:
		return []string{"it does not export its memory as " + abi.ExportMemory}
	case m.Memory.Min > limit:
		return []string{tooMuchMemory(m.Memory.Min, limit)}
	}
	return nil
}

func tooMuchMemory(pages, limit uint32) string {
	return fmt.Sprintf("it needs %d pages (%s) of memory to start with, its limit is %d (%s)", pages, pageSize(pages), limit, pageSize(limit))
}

// pageSize writes a number of pages as MiB.
func pageSize(pages uint32) string { return fmt.Sprintf("%.4g MiB", float64(pages)/16) }
