package wasm

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// mutations is how many broken modules are tried. The same number gives the same ones.
const mutations = 100

// TestMutations breaks modules of every kind of author in a few bytes each and takes
// them the whole way: scan, rewriting, compilation, configuration, a hook, on both
// engines. Each is refused with a reason, or runs within its limits; nothing
// panics.
func TestMutations(t *testing.T) {
	sources := mutable(t)
	compiled, interpreted := newEngine(t, Options{}), newEngine(t, Options{Interpret: true})
	refused, ran := 0, 0
	for n := range mutations {
		source := sources[n%len(sources)]
		module := mutate(rand.New(rand.NewPCG(uint64(n), 7)), source.module)
		for _, e := range []*Engine{compiled, interpreted} {
			if tryMutant(t, e, source.name, n, module) {
				ran++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d were refused, %d ran", refused, ran)
	if min(refused, ran) < mutations/4 { // of each on two engines
		t.Errorf("%d were refused and %d ran: both should be many", refused, ran)
	}
}

// source is a module that is broken in many ways.
type source struct {
	name   string
	module []byte
}

// mutable returns guests by hand, of which every export and host function is used, from
// TinyGo and, where Rust can be set up, from Rust.
func mutable(t *testing.T) []source {
	large := []source{{"qos", readFile(t, "..", "..", "plugins-wasm", "qos", "qos.wasm")}}
	rust := filepath.Join("..", "..", "testdata", "toolchain", "rust.sh")
	if said, err := exec.Command(rust).CombinedOutput(); err != nil && os.Geteuid() != 0 { // root can set it up
		t.Logf("no guest of Rust: %s", said)
	} else {
		large = append(large, source{"rust", buildReadWrite(t, "rust")})
	}
	var all []source
	for n, name := range []string{"everything", "quota", "fickle", "functions", "repeat", "alloc", "divisions", "fibonacci", "remember", "panic"} {
		all = append(all, source{name, wat(t, name)}, large[n%len(large)])
	}
	return all
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mutate returns a module that differs in a few bytes, most of them where the code and
// the data are.
func mutate(random *rand.Rand, module []byte) []byte {
	b := slices.Clone(module)
	for range 1 + random.IntN(2) {
		at := 8 + random.IntN(len(b)-8)
		if random.IntN(3) > 0 {
			at = len(b)/3 + random.IntN(len(b)-len(b)/3)
		}
		switch random.IntN(4) {
		case 0:
			b[at] ^= 1 << random.IntN(8)
		case 1:
			b[at] = byte(random.Uint32())
		case 2: // often an index, a count, or a constant
			b[at]++
		case 3: // the ends of what one byte can say, and the beginning of a longer number
			b[at] = []byte{0, 0x3f, 0x40, 0x7f, 0x80, 0xff}[random.IntN(6)]
		}
	}
	return b
}

// tryMutant reports whether the module could be loaded, and fails the test if it or its hook did
// not end as it must.
func tryMutant(t *testing.T, e *Engine, name string, n int, module []byte) (loaded bool) {
	t.Helper()
	start := time.Now()
	var err, hookErr error
	bytes := allocated(func() { loaded, err, hookErr = runMutant(t, e, module) })
	for _, err := range []error{err, hookErr} {
		if err == nil {
			continue
		}
		if text := err.Error(); strings.Contains(text, "panicked") || text != plugin.Printable(text, len(text)) {
			t.Errorf("mutant %d of %s: %q", n, name, text)
		}
	}
	if bytes > 64<<20 {
		t.Errorf("mutant %d of %s: allocated %d MiB", n, name, bytes>>20)
	}
	if took := time.Since(start); took > 4*startTimeout && wallClock() { // it is a bound on what has none, not on the limits
		t.Errorf("mutant %d of %s: took %v", n, name, took)
	}
	return loaded
}

func runMutant(t *testing.T, e *Engine, module []byte) (loaded bool, err, hookErr error) {
	p, err := e.Load(t.Context(), "mutant", module, PluginOptions{Timeout: 200 * time.Millisecond})
	if err != nil {
		return false, err, nil
	}
	_, hookErr = callPlugin(t.Context(), p, asking("work"))
	return true, p.Close(context.Background()), hookErr
}
