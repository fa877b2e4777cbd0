package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

// later builds a plugin with the SDK as one of minor version 1 would be: it says so, and has a function more. main is the
// plugin's source; "" is this package's.
func later(t *testing.T, main string) (file string) {
	t.Helper()
	dir, top := t.TempDir(), abs(t, "../../..")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	version, err := os.ReadFile(filepath.Join(top, "abi", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(version), "Minor = 0", "Minor = 1", 1)
	if newer == string(version) {
		t.Fatal("abi/doc.go does not say Minor = 0: write this test for the next version")
	}
	replace := map[string]string{
		filepath.Join(top, "abi", "doc.go"): write("doc.go", newer),
		filepath.Join(top, "sdk", "shrink.go"): write("shrink.go", `//go:build wasip1
package sdk

//go:wasmimport wp1 shrink
func hostShrink(by int32) int32

func Shrink(by int32) int32 { return hostShrink(by) }
`),
	}
	if main != "" {
		replace[filepath.Join(top, "sdk", "internal", "calls", "main.go")] = write("main.go", main)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "calls.wasm")
	guest.Run(t, ".", []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w",
		"-overlay", write("overlay.json", string(overlay)), "-o", file, ".")
	return file
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A plugin of a later SDK that uses nothing new is loaded and answers as ever: the minor version is that of what it uses.
func TestLaterSDK(t *testing.T) {
	file := later(t, "")
	guest.Play(t, file, fixtures)
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	in, err := e.Inspect(t.Context(), module, wasm.PluginOptions{})
	if err != nil || in.ABI != 0x10001 || in.Needs != 0x10000 || len(in.Problems) > 0 {
		t.Errorf("error %v: it was built for %#x and needs %#x: %q", err, in.ABI, in.Needs, in.Problems)
	}
}

// One that uses a function of the later version is refused, by the function's name.
func TestLaterSDKWithItsFunction(t *testing.T) {
	file := later(t, `package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {}

func init() {
	wp.Plugin("shrinks", "1.0.0").OnPostStartContainer(func(*wp.PostStartContainer) error {
		wp.Shrink(1)
		return nil
	})
}
`)
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	_, err = e.Load(t.Context(), "10-shrinks", module, wasm.PluginOptions{})
	const want = "loading plugin 10-shrinks: it imports wp1.shrink (i32) -> i32, which this host does not have; " +
		"this host serves wp1 1.0, a newer wasmproxy may serve it"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
