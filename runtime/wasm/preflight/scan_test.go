package preflight

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// allowance is what the scan of a module may allocate: a few times its size, and
// the space of error messages.
func allowance(module []byte) uint64 { return uint64(8*min(len(module), abi.MaxModule)) + 16<<10 }

// allocated is how many bytes f allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// guests are real modules: all of testdata/wat, one of TinyGo and one of Go.
func guests(t testing.TB) map[string][]byte {
	files, err := filepath.Glob("../../../testdata/wat/*.wasm")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d modules in testdata/wat, %v", len(files), err)
	}
	files = append(files, "../../../plugins-wasm/qos/qos.wasm", buildGo(t))
	modules := map[string][]byte{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		modules[filepath.Base(file)] = b
	}
	return modules
}

// buildGo builds a guest with the standard Go compiler.
func buildGo(t testing.TB) string {
	out := filepath.Join(t.TempDir(), "go.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "../testdata/wasi")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a Go guest: %v\n%s", err, b)
	}
	return out
}

// good are guests that nothing is wrong with.
var good = []string{"go", "qos", "noop", "quota", "conflict", "patient", "reject", "everything", "fickle", "remember", "functions", "repeat"}

// TestGuests scans real modules.
func TestGuests(t *testing.T) {
	modules := guests(t)
	for _, name := range good {
		module, err := modules[name+".wasm"], error(nil)
		n := allocated(func() { _, err = Scan(module) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if limit := allowance(module); n > limit {
			t.Errorf("%s: %d bytes made the scan allocate %d, want at most %d", name, len(module), n, limit)
		}
	}
}

// TestTruncated cuts real modules short at every byte. What is left is refused, but
// where the cut falls between sections that nothing else needs.
func TestTruncated(t *testing.T) {
	for name, module := range guests(t) {
		if len(module) > 100_000 { // the beginning and the end do for large ones
			module = module[:20_000]
		}
		for n := range module {
			_, err := Scan(module[:n])
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Offset > n || e.Reason == "") {
				t.Fatalf("%s, cut at %d: got %v", name, n, err)
			}
			if err == nil && !atEnd(module, n) {
				t.Fatalf("%s, cut at %d within a section: accepted", name, n)
			}
		}
	}
}

// atEnd reports whether a section ends at n.
func atEnd(module []byte, n int) bool {
	at := 8
	for at < n {
		size, shift := 0, 0
		for at++; ; at++ {
			size |= int(module[at]&0x7f) << shift
			shift += 7
			if module[at] < 0x80 {
				break
			}
		}
		at += 1 + size
	}
	return at == n
}

func FuzzScan(f *testing.F) {
	for name, module := range guests(f) {
		if name != "go.wasm" {
			f.Add(module)
		}
	}
	for _, tt := range hostile {
		if len(tt.module) < 100_000 {
			f.Add(tt.module)
		}
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		o, err := Scan(module)
		if o == nil {
			t.Fatal("no outline")
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(module)) {
			t.Fatalf("got %#v", err)
		}
		if err != nil {
			return
		}
		if n := allocated(func() { Scan(module) }); n > allowance(module) {
			t.Errorf("%d bytes made the scan allocate %d", len(module), n)
		}
	})
}

// BenchmarkScan scans what the compilers made.
func BenchmarkScan(b *testing.B) {
	modules := guests(b)
	for _, name := range []string{"quota.wasm", "qos.wasm", "go.wasm"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(modules[name])))
			for b.Loop() {
				if _, err := Scan(modules[name]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
