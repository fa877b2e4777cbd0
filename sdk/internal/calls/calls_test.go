package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// fixtures are those that the programs in Rust and C are played, too.
const fixtures = "../../../testdata/abi/typed/calls.json"

func TestNative(t *testing.T) { sdktest.Run(t, fixtures) }

func TestTinyGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.wasm")
	guest.Run(t, ".", nil, "../../../testdata/toolchain/plugin.sh", ".", file)
	guest.Play(t, file, fixtures)
}

func TestGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.wasm")
	guest.Run(t, ".", []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	guest.Play(t, file, fixtures)
}

// TestReadmeOfTheLibrary builds what the README of the SDK shows of the library, in the place of this package's program.
func TestReadmeOfTheLibrary(t *testing.T) {
	const around = `package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/glob"
	"github.com/wasmproxy/wasmproxy/sdk/image"
	"github.com/wasmproxy/wasmproxy/sdk/json"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

var (
	policy            string
	threshold, memory int64
	namespaces        []string
)

func main() { wp.Plugin(policy, "1").OnConfigure(configure).OnPreCreateContainer(create) }

`
	here, err := filepath.Abs("main.go")
	if err != nil {
		t.Fatal(err)
	}
	source, overlay := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{here: source}})
	err = errors.Join(err, os.WriteFile(overlay, replace, 0o644),
		os.WriteFile(source, []byte(around+guest.Example(t, "../../README.md", "## The library", "go")), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	guest.Run(t, ".", nil, "go", "build", "-overlay", overlay, "-o", filepath.Join(t.TempDir(), "calls"), ".")
}
