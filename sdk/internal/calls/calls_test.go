package main

import (
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
