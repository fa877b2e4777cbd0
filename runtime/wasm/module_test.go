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
)

// section writes a section of a module.
func section(id byte, content ...byte) []byte {
	return append(append([]byte{id}, binary.AppendUvarint(nil, uint64(len(content)))...), content...)
}

// num writes a number as LEB128.
func num(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// moduleOf writes a module of sections.
func moduleOf(sections ...[]byte) []byte { return append([]byte(magic), join(sections...)...) }

var (
	oneType     = section(1, 1, 0x60, 0, 0)
	oneFunction = section(3, 1, 0)
)

// bombs are small modules by which wazero's decoder, given them as they are,
// allocates up to 4 GiB or panics, and what is said of them.
var bombs = []struct {
	name, want string
	module     []byte
}{
	{"types", "type section claims 20000000 types where 0 bytes are left", moduleOf(section(1, num(20_000_000)...))},
	{"parameters", "type section claims 4294967295 values", moduleOf(section(1, join([]byte{1, 0x60}, num(1<<32-1))...))},
	{"imports", "import section claims 20000000 imports", moduleOf(section(2, num(20_000_000)...))},
	{"import name", "import section claims 4294967295 bytes where 0 are left", moduleOf(section(2, join([]byte{1}, num(1<<32-1))...))},
	{"functions", "function section claims 200000000 functions", moduleOf(oneType, section(3, num(200_000_000)...))},
	{"functions that are there", "function section holds 20001 functions, the limit is 20000", moduleOf(oneType, section(3, join(num(20_001), make([]byte, 20_001))...))},
	{"tables", "table section claims 9 tables where 3", moduleOf(section(4, 9, 0x70, 0, 0))},
	{"table", "table section holds a table of 50000000 entries, the limit is 65536", moduleOf(section(4, join([]byte{1, 0x70, 0}, num(50_000_000))...))},
	{"memories", "memory section holds 2 memories, the limit is 1", moduleOf(section(5, 2, 0, 1, 0, 1))},
	{"globals", "global section claims 100000000 globals", moduleOf(section(6, num(100_000_000)...))},
	{"exports", "export section claims 100000000 exports", moduleOf(section(7, num(100_000_000)...))},
	{"export name", "export section claims 4000000000 bytes", moduleOf(section(7, join([]byte{1}, num(4_000_000_000))...))},
	{"segments of elements", "element section claims 100000000 segments", moduleOf(section(9, num(100_000_000)...))},
	{"elements", "element section claims 100000000 entries", moduleOf(section(9, join([]byte{1, 0, 0x41, 0, 0x0b}, num(100_000_000))...))},
	{"passive elements", "element section holds a segment of kind 1; only active ones are supported", moduleOf(section(9, 1, 1, 0, 0))},
	{"bodies", "code section claims 100000000 functions", moduleOf(oneType, oneFunction, section(10, num(100_000_000)...))},
	{"body", "code section claims 4294967295 bytes", moduleOf(oneType, oneFunction, section(10, join([]byte{1}, num(1<<32-1))...))},
	{"locals", "code section holds function 0, which has more than 2000 locals", moduleOf(oneType, oneFunction, section(10, join([]byte{1, 6, 1}, num(1_000_000), []byte{0x7f, 0x0b})...))},
	{"data segments", "data section claims 20000000 segments", moduleOf(section(11, num(20_000_000)...))},
	{"data", "data section claims 4294967295 bytes", moduleOf(section(11, join([]byte{1, 0, 0x41, 0, 0x0b}, num(1<<32-1))...))},
	{"name of a custom section", "custom section claims 4294967295 bytes", moduleOf(section(0, num(1<<32-1)...))},
	{"section", "module claims 4294967295 bytes where 0 are left", moduleOf(join([]byte{1}, num(1<<32-1)))},
	{"unknown section", "module has a section of unknown kind 13", moduleOf(section(13, 1))},
	{"trailing bytes", "type section goes on for 1 bytes after its end", moduleOf(section(1, 0, 0))},
	{"long number", "type section holds a number that is not an unsigned 32-bit LEB128", moduleOf(section(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0))},
}

// maxAllocated is what a refused module may cost: little more than itself.
const maxAllocated = 1 << 20

func TestBombs(t *testing.T) {
	for _, tt := range bombs {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			if n := allocated(func() { _, err = scan(tt.module) }); n > maxAllocated {
				t.Errorf("scanning %d bytes allocated %d", len(tt.module), n)
			}
			wantError(t, err, tt.want)
		})
	}
}

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
	m, err := scan(withSection(withSection(plain, ".debug_info", []byte("DWARF")), "producers", nil))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.code, plain) {
		t.Error("what is compiled is not the module without its custom sections")
	}
	if last := m.sections[len(m.sections)-1]; last != (Section{`"producers"`, 10}) {
		t.Errorf("the last section is %+v", last)
	}
}

// TestImportKinds imports what is no function.
func TestImportKinds(t *testing.T) {
	for kind, desc := range map[string][]byte{"(table)": {1, 0x70, 0, 1}, "(memory)": {2, 1, 1, 2}, "(global)": {3, 0x7f, 0}} {
		m, err := scan(moduleOf(section(2, join([]byte{1, 3}, []byte("wp1"), []byte{3}, []byte("get"), desc)...)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.checkImports(), "it imports wp1.get "+kind+", which this host does not have"; len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_, err := scan(moduleOf(section(2, join([]byte{1, 3}, []byte("env"), []byte{1}, []byte("t"), []byte{4, 0, 0})...)))
	wantError(t, err, "import section imports something of unknown kind 4")
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
	for _, b := range bombs {
		f.Add(b.module)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := scan(b)
		if err != nil {
			wantError(t, err, "")
			return
		}
		for _, problem := range m.check(DefaultMemoryPages) {
			if problem != printable(problem, len(problem)) {
				t.Errorf("not printable: %q", problem)
			}
		}
		ctx := context.Background()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(DefaultMemoryPages))
		defer r.Close(ctx)
		n := allocated(func() {
			if code, err := r.CompileModule(ctx, m.code); err == nil {
				code.Close(ctx)
			}
		})
		if limit := uint64(1<<20 + 1000*len(b)); n > limit {
			t.Errorf("decoding %d bytes allocated %d", len(b), n)
		}
	})
}
