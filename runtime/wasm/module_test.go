package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// magic is how a module begins.
const magic = "\x00asm\x01\x00\x00\x00"

// section writes a section of a module.
func section(id byte, content ...byte) []byte {
	return append(append([]byte{id}, binary.AppendUvarint(nil, uint64(len(content)))...), content...)
}

// num writes a number as LEB128.
func num(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// moduleOf writes a module of sections.
func moduleOf(sections ...[]byte) []byte { return append([]byte(magic), join(sections...)...) }

// allocated is how many bytes f allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNameSection gives a good module name sections that lie. They are dropped,
// as the specification has it, and cost nothing.
func TestNameSection(t *testing.T) {
	e := newEngine(t, Options{})
	many := num(100_000_000)
	for name, content := range map[string][]byte{
		"functions":        join([]byte{1, byte(len(many))}, many),
		"locals":           join([]byte{2, byte(len(many))}, many),
		"locals of one":    join([]byte{2, byte(len(many) + 2), 1, 0}, many),
		"length of a name": join([]byte{1, byte(len(many) + 2), 1, 0}, many),
		"module":           join([]byte{0, byte(len(many))}, many),
		"size":             join([]byte{1}, many),
		"other":            {9, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			module := withSection(wat(t, "empty")[:len(magic)], "name", content)
			module = append(module, wat(t, "quota")[len(magic):]...)
			n := allocated(func() {
				p, err := e.Load(t.Context(), "p", module, PluginOptions{})
				if err != nil {
					t.Fatal(err)
				}
				wantQuota(t, p)
				p.Close(t.Context())
			})
			if n > 8<<20 {
				t.Errorf("loading allocated %d bytes", n)
			}
		})
	}
}

// TestCustomSections shows that wazero is not given what it does not need.
func TestCustomSections(t *testing.T) {
	plain := wat(t, "trap")
	short, err := preflight.Scan(plain)
	if err != nil {
		t.Fatal(err)
	}
	m, err := preflight.Scan(withSection(withSection(plain, ".debug_info", []byte("DWARF")), "producers", nil))
	if err != nil {
		t.Fatal(err)
	}
	want, err := fuel.Instrument(short, fuel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fuel.Instrument(m, fuel.Options{}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what is compiled is not that of the module without its custom sections, error %v", err)
	}
	if last := m.Sections[len(m.Sections)-1]; last != (preflight.Section{Name: `"producers"`, Size: 10}) {
		t.Errorf("the last section is %+v", last)
	}
}

// TestImportKinds imports what is no function.
func TestImportKinds(t *testing.T) {
	for kind, desc := range map[string][]byte{"(table)": {1, 0x70, 0, 1}, "(memory)": {2, 1, 1, 2}, "(global)": {3, 0x7f, 0}} {
		m, err := preflight.Scan(moduleOf(section(2, join([]byte{1, 3}, []byte("wp1"), []byte{3}, []byte("get"), desc)...)))
		if err != nil {
			t.Fatal(err)
		}
		want := "it imports wp1.get " + kind + ", which this host does not have"
		if _, got := checkImports(m, nil); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzModule checks that scan refuses or that wazero reads the module within
// memory of the module's own order, without a panic.
func FuzzModule(f *testing.F) {
	files, err := filepath.Glob("../../testdata/wat/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatal("no modules in testdata/wat", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := preflight.Scan(b)
		if err != nil {
			wantError(t, err, "")
			return
		}
		for _, problem := range check(m, nil, DefaultMemoryPages) {
			if problem != plugin.Printable(problem, len(problem)) {
				t.Errorf("not printable: %q", problem)
			}
		}
		ctx := context.Background()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(DefaultMemoryPages))
		defer r.Close(ctx)
		n := allocated(func() {
			plain, err := fuel.Instrument(m, fuel.Options{Unmetered: true})
			if err != nil {
				return // too large for what it holds
			}
			code, err := r.CompileModule(ctx, plain)
			if err != nil {
				return
			}
			code.Close(ctx)
			metered, err := fuel.Instrument(m, fuel.Options{})
			if err != nil {
				return // too large for what it holds
			}
			if code, err = r.CompileModule(ctx, metered); err != nil {
				t.Errorf("instrumented: %v", err)
				return
			}
			code.Close(ctx)
		})
		if limit := uint64(1<<20 + 2000*len(b)); n > limit {
			t.Errorf("decoding %d bytes allocated %d", len(b), n)
		}
	})
}
