package conformance

import (
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

// TestTyped plays the fixtures of sdk/internal/calls, which go through the types of Go's
// SDK there, to the same program that goes through those of Rust's and C's.
func TestTyped(t *testing.T) {
	typed, err := filepath.Abs(filepath.Join(folder, "typed"))
	if err != nil {
		t.Fatal(err)
	}
	for language, source := range map[string]string{"rust": "calls.rs", "c": "calls.c"} {
		t.Run(language, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "calls.wasm")
			guest.Run(t, ".", nil, filepath.Join(folder, "guest", "build.sh"), language, file, filepath.Join(typed, source))
			guest.Play(t, file, filepath.Join(typed, "calls.json"))
		})
	}
}
