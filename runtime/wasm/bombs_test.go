package wasm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// bomb is a module whose functions, beside those that make it a plugin, are like these.
type bomb struct {
	types     []string // beside the three of every plugin; the first is type 3
	typeOf    int      // of the functions
	functions int
	body      []byte // of each: locals and code, without its length
	globals   int    // mutable
	silent    bool   // what its version is only running it tells
}

func (b bomb) module() []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, vector(1, append([]string{"\x60\x00\x01\x7f", "\x60\x01\x7f\x01\x7f", "\x60\x00\x00"}, b.types...)...)...)
	m = append(m, vector(3, append([]string{"\x00", "\x01"}, slices.Repeat([]string{string(uleb(max(2, b.typeOf)))}, b.functions)...)...)...)
	m = append(m, vector(4, "\x70\x00\x01")...)
	m = append(m, vector(5, "\x00\x01")...)
	if b.globals > 0 {
		m = append(m, vector(6, slices.Repeat([]string{"\x7f\x01\x41\x00\x0b"}, b.globals)...)...)
	}
	m = append(m, vector(7, exported(abi.ExportABI, 0, 0), exported(abi.ExportHook, 0, 1), exported(abi.ExportMemory, 2, 0))...)
	version := fmt.Sprintf("\x00\x41%s\x0b", uleb(abi.Version))
	if b.silent {
		version = "\x00\x01" + version[1:] // a nop first
	}
	m = append(m, vector(10, append([]string{sized(version), sized("\x00\x41\x00\x0b")},
		slices.Repeat([]string{sized(string(b.body))}, b.functions)...)...)...)
	return withSection(m, abi.ManifestSection, []byte(`{"name":"bomb","version":"1","hooks":["PreCreateContainer"]}`))
}

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func code(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func times(n int, parts ...any) []byte { return bytes.Repeat(code(parts...), n) }

func locals(n int) []byte {
	if n == 0 {
		return []byte{0}
	}
	return code(1, uleb(n), 0x7f)
}

const (
	opBlock, opLoop, opIf, opEnd, opBr, opBrIf, opBrTable = 2, 3, 4, 0xb, 0xc, 0xd, 0xe
	opDrop, opGet, opSet, opConst, opAdd                  = 0x1a, 0x20, 0x21, 0x41, 0x6a
	none, i32                                             = 0x40, 0x7f
)

// compileTime is how much processor time and memory, in MiB, a process takes that compiles
// a module as the proxy does.
func compileTime(t *testing.T, module []byte) (time.Duration, int64) {
	t.Helper()
	m, err := preflight.Scan(module)
	if err != nil {
		t.Fatal(err)
	}
	code, err := fuel.Instrument(m, fuel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	how, _ := json.Marshal(settings{Pages: DefaultMemoryPages})
	job, _ := json.Marshal(codecache.Job{Dir: t.TempDir(), Settings: string(how), Limits: codecache.DefaultLimits})
	cmd := exec.CommandContext(t.Context(), os.Args[0], CompilerCommand, string(job))
	cmd.Stdin = bytes.NewReader(code)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss >> 10
}

// TestLargestModules compiles the largest module of each kind that is accepted: none takes
// more than 10 s of processor time, a third of what the compiler may take; 4 to 6 s were measured. All of them take two minutes, so all are compiled where
// nothing else runs; elsewhere those that were the worst, which only have to be compiled within what the compiler may take.
func TestLargestModules(t *testing.T) {
	if underRace {
		t.Skip("the compiler takes ten times as long under the race detector; make hostile runs this without it")
	}
	const limit = 10 * time.Second
	for _, w := range worst {
		if !wallClock() && !w.always {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			b, n := w.largest(t)
			module := b.module()
			took, mib := compileTime(t, module)
			t.Logf("%d functions of n %d, %d KiB: %v, %d MiB", b.functions, n, len(module)>>10, took, mib)
			if took > limit && wallClock() {
				t.Errorf("it took %v of processor time, want at most %v", took, limit)
			}
		})
	}
}

// TestBombsAreRefused has the modules of an attack, which took the compiler up to 60 s. The
// scan refuses each before anything is compiled.
func TestBombsAreRefused(t *testing.T) {
	for name, b := range map[string]bomb{
		"N42 br_table of 500,000 labels": {functions: 15, body: worst[0].body(500_000)},
		"N43 br_tables of one label":     {functions: 8, body: worst[1].body(15_000)},
		"N44 br_tables over 500 blocks":  {functions: 10, body: worst[2].body(200)},
		"N49 functions beside globals":   {functions: 19_000, globals: 9_999, body: code(locals(0), opEnd)},
		"N54 empty loops":                {functions: 16, body: code(locals(0), times(150_000, opLoop, none, opEnd), opEnd)},
		"N55 loops":                      {functions: 16, body: code(locals(0), times(20_000, opLoop, none, times(15, 1), opEnd), opEnd)},
		"P15 ifs that change 500 locals": {functions: 1, body: []byte(slowBody(8000, 500))},
		"calls by table":                 {functions: 16, body: code(locals(0), times(100_000, opConst, 0, 0x11, 2, 0), opEnd)},
		"loads":                          {functions: 17, body: code(locals(0), times(80_000, opConst, 0, 0x28, 0, 0, opDrop), opEnd)},
	} {
		module := b.module()
		start := processorTime(t)
		_, err := preflight.Scan(module)
		took := processorTime(t) - start
		if err == nil || !strings.Contains(err.Error(), "to compile") {
			t.Errorf("%s: got %v, want that it takes too long to compile", name, err)
		}
		if took > time.Second && !underRace {
			t.Errorf("%s: to refuse it took %v of processor time", name, took)
		}
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// worst are functions that take the compiler long, in proportion to n at least.
var worst = []worstCase{
	{name: "N42 labels of one br_table, with a result", body: func(n int) []byte {
		return code(locals(0), opBlock, i32, opConst, 0, opConst, 0, opBrTable, uleb(n), times(n+1, 0), opEnd, opDrop, opEnd)
	}},
	{name: "N43 br_tables of one label", body: func(n int) []byte {
		return code(locals(0), times(n, opBlock, none, opConst, 0, opBrTable, 1, 0, 0, opEnd), opEnd)
	}},
	{name: "N44 br_tables over 500 blocks", body: func(n int) []byte {
		var labels []byte
		for i := range 501 {
			labels = append(labels, uleb(i)...)
		}
		return code(locals(0), times(500, opBlock, none), times(n, opBlock, none, opConst, 0, opBrTable, uleb(500), labels, opEnd), times(500, opEnd), opEnd)
	}},
	{name: "N15 ifs that change 500 locals", body: func(n int) []byte { return []byte(slowBody(n, 500)) }},
	{name: "ifs that change 50 locals", body: func(n int) []byte { return []byte(slowBody(n, 50)) }},
	{name: "ifs that change 1999 locals", body: func(n int) []byte { return []byte(slowBody(n, 1999)) }},
	{name: "ifs", body: func(n int) []byte { return code(locals(0), times(n, opConst, 0, opIf, none, opEnd), opEnd) }},
	{name: "branches out of blocks", body: func(n int) []byte {
		return code(locals(0), times(n, opBlock, none, opConst, 0, opBrIf, 0, opEnd), opEnd)
	}},
	{name: "branches to one place", always: true, body: func(n int) []byte {
		return code(locals(0), opBlock, none, times(n, opConst, 0, opBrIf, 0), opEnd, opEnd)
	}},
	{name: "branches with 500 locals", body: func(n int) []byte {
		var b []byte
		for i := range n {
			b = append(b, code(opConst, 0, opSet, uleb(i%500), opConst, 0, opBrIf, 0)...)
		}
		return code(locals(500), opBlock, none, b, opEnd, times(500, opGet, 7, opDrop), opEnd)
	}},
	{name: "loops", always: true, body: func(n int) []byte { return code(locals(0), times(n, opLoop, none, times(20, 1), opEnd), opEnd) }},
	{name: "N46 loops with 200 locals", body: func(n int) []byte {
		var b []byte
		for i := range n {
			b = append(b, code(opLoop, none, opGet, uleb(i%200), opConst, 1, opAdd, opSet, uleb(i%200), opConst, 0, opBrIf, 0, times(15, 1), opEnd)...)
		}
		return code(locals(200), b, opEnd)
	}},
	{name: "N48 calls with 900 parameters", params: 900, body: func(n int) []byte {
		return code(locals(0), times(n, times(900, opConst, 0), 0x10, 2), opEnd)
	}},
	{name: "calls", always: true, body: func(n int) []byte { return code(locals(0), times(n, 0x10, 2), opEnd) }},
	{name: "calls by table", body: func(n int) []byte { return code(locals(0), times(n, opConst, 0, 0x11, 2, 0), opEnd) }},
	{name: "N49 functions beside globals", globals: 9_999, most: 40, body: func(n int) []byte { return code(locals(0), times(n, 1), opEnd) }},
	{name: "functions", most: 40, body: func(n int) []byte { return code(locals(0), times(n, 1), opEnd) }},
	{name: "loads", body: func(n int) []byte { return code(locals(0), times(n, opConst, 0, 0x28, 0, 0, opDrop), opEnd) }},
	{name: "stores", body: func(n int) []byte { return code(locals(0), times(n, opConst, 0, opConst, 0, 0x36, 0, 0), opEnd) }},
	{name: "divisions", body: func(n int) []byte {
		return code(locals(1), times(n, opGet, 0, opGet, 0, 0x6d, opSet, 0), opEnd)
	}},
	{name: "integers of floats", body: func(n int) []byte { return code(locals(0), times(n, 0x43, 0, 0, 0, 0, 0xa8, opDrop), opEnd) }},
	{name: "saturated floats", body: func(n int) []byte { return code(locals(0), times(n, 0x43, 0, 0, 0, 0, 0xfc, 0, opDrop), opEnd) }},
	{name: "memory that grows", body: func(n int) []byte {
		return code(locals(0), times(n, opConst, 0, 0x40, 0, opDrop, times(20, 1)), opEnd)
	}},
	{name: "memory that is copied", body: func(n int) []byte {
		return code(locals(0), times(n, opConst, 0, opConst, 0, opConst, 0, 0xfc, 10, 0, 0, times(20, 1)), opEnd)
	}},
	{name: "N41 sums", body: func(n int) []byte { return code(locals(0), times(n, 0x3f, 0), times(n-1, opAdd), opDrop, opEnd) }},
	{name: "selects", body: func(n int) []byte { return code(locals(0), 0x3f, 0, times(n, 0x3f, 0, 0x3f, 0, 0x1b), opDrop, opEnd) }},
	{name: "N47 locals written in turn", body: func(n int) []byte {
		var b []byte
		for i := range n {
			b = append(b, code(opGet, uleb(i%1999), opSet, uleb((i+7)%1999))...)
		}
		return code(locals(1999), b, opEnd)
	}},
	{name: "globals", globals: 5, body: func(n int) []byte { return code(locals(0), times(n, 0x23, 0, 0x24, 1), opEnd) }},
}

// largest is the module of such functions that is just accepted, and the n of each.
func (w *worstCase) largest(t *testing.T) (bomb, int) {
	t.Helper()
	b := bomb{globals: w.globals, functions: 1}
	if w.params > 0 {
		b.types, b.typeOf = []string{string(code(0x60, uleb(w.params), times(w.params, i32), 0))}, 3
	}
	n := search(cmp.Or(w.most, 200_000), func(n int) bool { b.body = w.body(n); return accepted(b) })
	b.body = w.body(n)
	b.functions = search(20_000, func(n int) bool { b.functions = n; return accepted(b) })
	return b, n
}

type worstCase struct {
	name    string
	body    func(n int) []byte
	params  int // of the function that is called
	globals int
	most    int  // n
	always  bool // compiled in every run
}

// accepted reports whether a module may be compiled.
func accepted(b bomb) bool {
	if b.functions*len(b.body) > abi.MaxModule {
		return false // without making it
	}
	m, err := preflight.Scan(b.module())
	if err == nil {
		_, err = fuel.Instrument(m, fuel.Options{})
	}
	return err == nil
}

// search returns the largest number up to most that fits.
func search(most int, fits func(int) bool) int {
	return sort.Search(most, func(n int) bool { return !fits(n + 1) })
}
