package wasm

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

// compileHere is set in the environment of a process that compiles by itself.
const compileHere = "TEST_COMPILE_IN_THIS_PROCESS"

// A module that is within all limits of the scan and takes the compiler seconds
// is refused, and neither the calls of another plugin nor Go's collector nor the
// memory of this process notice: not more than the bounds above what they notice
// of the machine's other work just before.
func TestTediousModule(t *testing.T) {
	e := diskEngine(t, filepath.Join(t.TempDir(), "cache"), codecache.Limits{CPU: time.Second})
	attempts := 3 // what the compiler costs it costs each time, what another process costs it does not
	if os.Getenv(compileHere) != "" {
		e.disk, attempts = nil, 1
	}
	p, err := e.Load(t.Context(), "other", wat(t, "quota"), PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	noticed := true
	for i := 0; noticed && i < attempts; i++ {
		before := watch(t, p, func() { time.Sleep(time.Second) })
		during := watch(t, p, func() {
			var slow plugin.Plugin
			if slow, err = e.Load(t.Context(), "tedious", tedious(20, 650, 500), PluginOptions{}); err == nil {
				_ = slow.Close(t.Context())
			}
		})
		t.Logf("before: %v; during: %v", before, during)
		noticed = during.grown > 16<<20 && !underRace ||
			wallClock() && (during.call > before.call+50*time.Millisecond || during.collect > before.collect+100*time.Millisecond)
	}
	if noticed {
		t.Errorf("it was noticed")
	}
	wantError(t, err, "loading plugin tedious: compiling: took more than the 1s of processor time that it may")
}

// The test above can fail: a process that compiles the module by itself grows.
func TestTediousModuleCompiledHere(t *testing.T) {
	if os.Getenv(compileHere) != "" {
		t.Skip("this is the process that compiles by itself")
	}
	if underRace {
		t.Skip("times and memory under the race detector are not the proxy's, so nothing is held to a bound")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTediousModule$", "-test.v")
	cmd.Env = append(os.Environ(), compileHere+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it was noticed") {
		t.Errorf("compiled in one process: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// noticed is what others notice of something.
type noticed struct {
	call    time.Duration // 99th percentile of a plugin's calls
	collect time.Duration // the longest time of a garbage collection
	grown   int           // by how much the resident memory of this process grew at most, in bytes
	calls   int
}

func (n noticed) String() string {
	return fmt.Sprintf("p99 of %d calls %v, collector at most %v, resident memory +%d KiB", n.calls, n.call, n.collect, n.grown>>10)
}

// watch calls a plugin, collects garbage and measures until f has ended.
func watch(t *testing.T, p plugin.Plugin, f func()) (n noticed) {
	t.Helper()
	start := resident(t)
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	var took []time.Duration
	var collected time.Time
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // with one more call, for a machine that has stalled all the while
		case <-time.After(100 * time.Microsecond):
		}
		at := time.Now()
		if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(at))
		if at = time.Now(); at.Sub(collected) > 20*time.Millisecond { // however slow the calls are
			runtime.GC()
			n.collect = max(n.collect, time.Since(at))
			n.grown = max(n.grown, resident(t)-start)
			collected = time.Now()
		}
	}
	slices.Sort(took)
	n.call, n.calls = took[len(took)*99/100], len(took)
	return n
}

// tedious is a plugin that takes long to compile: functions with many blocks
// that many locals live through.
func tedious(functions, blocks, locals int) []byte {
	module := append([]byte("\x00asm\x01\x00\x00\x00"),
		vector(1, "\x60\x00\x01\x7f", "\x60\x01\x7f\x01\x7f", "\x60\x00\x00")...) // () -> i32, (i32) -> i32, () -> ()
	module = append(module, vector(3, append([]string{"\x00", "\x01"}, slices.Repeat([]string{"\x02"}, functions)...)...)...)
	module = append(module, vector(5, "\x00\x01")...)
	module = append(module, vector(7, exported(abi.ExportABI, 0, 0), exported(abi.ExportHook, 0, 1), exported(abi.ExportMemory, 2, 0))...)
	version := fmt.Sprintf("\x00\x41%s\x0b", binary.AppendUvarint(nil, abi.Version))
	module = append(module, vector(10, append([]string{sized(version), sized("\x00\x41\x00\x0b")},
		slices.Repeat([]string{sized(slowBody(blocks, locals))}, functions)...)...)...)
	return withSection(module, abi.ManifestSection, []byte(`{"name":"tedious","version":"1","hooks":["PreCreateContainer"]}`))
}

func slowBody(blocks, locals int) string {
	b := append(binary.AppendUvarint([]byte{1}, uint64(locals)), 0x7f)
	local := func(op byte, n int) { b = binary.AppendUvarint(append(b, op), uint64(n%locals)) }
	for i := range blocks {
		local(0x20, i)               // local.get
		b = append(b, 0x04, 0x40)    // if
		local(0x20, i+1)             // local.get
		b = append(b, 0x41, 1, 0x6a) // i32.const 1, i32.add
		local(0x21, i*7)             // local.set
		b = append(b, 0x0b)          // end
	}
	return string(append(b, 0x0b))
}

func vector(id byte, items ...string) []byte {
	content := binary.AppendUvarint(nil, uint64(len(items)))
	for _, item := range items {
		content = append(content, item...)
	}
	return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
}

func sized(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func exported(name string, kind, index byte) string { return sized(name) + string([]byte{kind, index}) }
