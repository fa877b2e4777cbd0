package wasm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// buildGuest builds testdata/wasi as authors build theirs.
func buildGuest(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "wasi.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/wasi")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the guest: %v\n%s", err, output)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goPlugin loads the guest.
func goPlugin(t testing.TB, e *Engine, module []byte, o PluginOptions) plugin.Plugin {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	p, err := e.Load(t.Context(), "wasi", module, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(t.Context()) })
	return p
}

// found calls the guest and returns what it found.
func found(t *testing.T, p plugin.Plugin, ev *testEvent) string {
	t.Helper()
	changes, err := callPlugin(t.Context(), p, ev)
	if err != nil || len(changes) != 1 {
		t.Fatalf("got %v, %v", changes, err)
	}
	return changes[0].Text
}

// TestGo runs standard Go on our WASI.
func TestGo(t *testing.T) {
	e, module := newEngine(t, Options{}), buildGuest(t)
	p := goPlugin(t, e, module, PluginOptions{Instances: 1})
	for do, want := range map[string]string{
		"time":         fmt.Sprint(at.UnixNano(), true),
		"surroundings": "0 0 open /etc/passwd: Not implemented on wasip1",
		"sleep":        "",
		"goroutines":   "from a goroutine",
	} {
		if got := found(t, p, asking(do)); got != want {
			t.Errorf("%s: found %q, want %q", do, got, want)
		}
	}
	for do, want := range map[string]string{
		"panic": "it printed: panic: runtime error: index out of range [5] with length 0",
		"exit":  "exited with code 3",
		"block": "it printed: fatal error: all goroutines are asleep - deadlock!",
	} {
		_, err := callPlugin(t.Context(), p, asking(do))
		wantError(t, err, want)
		if err != nil && strings.Contains(err.Error(), ".go:") {
			t.Errorf("%s: error holds a stack trace: %v", do, err)
		}
	}
}

// TestGoRandom shows that random numbers depend on the event, and on no more.
func TestGoRandom(t *testing.T) {
	e, module := newEngine(t, Options{}), buildGuest(t)
	later := asking("random")
	later.at = at.Add(1)
	var got [3]string
	for i, ev := range []*testEvent{asking("random"), asking("random"), later} {
		got[i] = found(t, goPlugin(t, e, module, PluginOptions{}), ev)
	}
	if got[0] != got[1] || got[0] == got[2] {
		t.Errorf("got %q: want the first two equal, the third another", got)
	}
}

func TestGoPrints(t *testing.T) {
	var logged record
	p := goPlugin(t, newEngine(t, Options{}), buildGuest(t), PluginOptions{Log: logged.logger()})
	found(t, p, asking("print"))
	for _, want := range []string{
		`level=INFO msg="plugin log" plugin=wasi hook=PreCreateContainer text="to stdout,"`,
		`level=INFO msg="plugin log" plugin=wasi hook=PreCreateContainer text="in two lines"`,
		`level=WARN msg="plugin log" plugin=wasi hook=PreCreateContainer text="to stderr, without an end"`,
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("log lacks %s:\n%s", want, logged.String())
		}
	}
}

// TestGoCollects shows that Go's collector works with our clock: the guest makes
// far more garbage than its memory holds.
func TestGoCollects(t *testing.T) {
	p := goPlugin(t, newEngine(t, Options{}), buildGuest(t), PluginOptions{Instances: 1})
	for i := range 500 {
		ev := asking("collect")
		ev.at = at.Add(time.Duration(i) * time.Second)
		found(t, p, ev)
	}
	g, err := p.(*guests).pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.(*guests).pool.Put(g)
	if size := g.instance.Memory().Size(); size > 16<<20 {
		t.Errorf("after 500 MiB of garbage its memory has %d MiB", size>>20)
	}
}
