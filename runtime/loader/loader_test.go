package loader

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// A module on which the engine panics is one plugin that does not load. No
// module does that to the engine there is, so there is none here.
func TestPanicWhileLoading(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "10-bad.wasm"), []byte("\x00asm\x01\x00\x00\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, problems := registry.Read(registry.Dirs{Plugins: dir})
	if len(found) != 1 || len(problems) > 0 {
		t.Fatal(found, problems)
	}
	l := New(Options{Config: new(config.Config), Observer: observe.Discard()}) // without an engine
	if _, err := l.Open(t.Context(), found[0], NewPersistent(), false); err == nil || !strings.Contains(err.Error(), "loading plugin 10-bad: panic") {
		t.Errorf("error %v", err)
	}
}
