package wasm

import (
	"context"
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
	var logged record
	open := func(t *testing.T) plugin.Plugin {
		p, err := e.Load(t.Context(), "wasi", module, PluginOptions{Timeout: time.Minute, Instances: 1, Observer: logged.logger()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(context.Background()) })
		return p
	}
	p := open(t) // open until the end, so that the module is compiled once

	for do, want := range map[string]string{
		"time":         fmt.Sprint(at.UnixNano(), true),
		"surroundings": "0 0 open /etc/passwd: Not implemented on wasip1",
		"goroutines":   "from a goroutine",
		"sleep":        "",
	} {
		t.Run(do, func(t *testing.T) {
			if got := found(t, p, asking(do)); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
	for do, want := range map[string]string{
		"panic": "it printed: panic: runtime error: index out of range [5] with length 0",
		"exit":  "exited with code 3 (it printed: no tier)",
		"block": "it printed: fatal error: all goroutines are asleep - deadlock!",
	} {
		t.Run(do, func(t *testing.T) {
			_, err := callPlugin(t.Context(), p, asking(do))
			wantError(t, err, want)
			if strings.Contains(err.Error(), ".go:") {
				t.Errorf("error holds a stack trace: %v", err)
			}
		})
	}
	t.Run("random", func(t *testing.T) { // it depends on the event, and on no more
		later := asking("random")
		later.at = at.Add(1)
		first, again, other := found(t, open(t), asking("random")), found(t, open(t), asking("random")), found(t, open(t), later)
		if first != again || first == other {
			t.Errorf("got %q, %q and %q: want the first two equal, the third another", first, again, other)
		}
	})
	t.Run("print", func(t *testing.T) { wantPrinted(t, p, &logged) })
	t.Run("collect", func(t *testing.T) { wantCollected(t, p.(*guests)) })
}

func wantPrinted(t *testing.T, p plugin.Plugin, logged *record) {
	found(t, p, asking("print"))
	for _, want := range []string{
		`level=INFO msg="plugin log" plugin=wasi hook=PreCreateContainer namespace=prod pod=web-0 text="to stdout,"`,
		`level=INFO msg="plugin log" plugin=wasi hook=PreCreateContainer namespace=prod pod=web-0 text="in two lines"`,
		`level=WARN msg="plugin log" plugin=wasi hook=PreCreateContainer namespace=prod pod=web-0 text="to stderr, without an end"`,
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("log lacks %s:\n%s", want, logged.String())
		}
	}
}

// wantCollected shows that Go's collector works with our clock: the guest makes
// far more garbage than its memory holds.
func wantCollected(t *testing.T, p *guests) {
	for i := range 200 {
		ev := asking("collect")
		ev.at = at.Add(time.Duration(i) * time.Second)
		found(t, p, ev)
	}
	g, err := p.pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.pool.Put(g)
	if size := g.instance.Memory().Size(); size > 16<<20 {
		t.Errorf("after 200 MiB of garbage its memory has %d MiB", size>>20)
	}
}
