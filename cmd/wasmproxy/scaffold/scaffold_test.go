package scaffold_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/cmd/wasmproxy/scaffold"
)

// maxLines is how many lines of Go the SDK beside a new plugin may have, without blank ones and
// those that are comments.
const maxLines = 4500

// TestGoPluginHasTheSDKAlone writes a plugin in Go: the SDK beside it is small, has nothing
// of the host, and its tests pass without a network.
func TestGoPluginHasTheSDKAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cpu-boost")
	if err := scaffold.Write(dir, "cpu-boost", "go", scaffold.Default); err != nil {
		t.Fatal(err)
	}
	lines := 0
	sdk := os.DirFS(filepath.Join(dir, "wasmproxy"))
	err := fs.WalkDir(sdk, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		if !strings.HasPrefix(name, "abi/") && !strings.HasPrefix(name, "sdk/") {
			t.Errorf("%s is beside the plugin", name)
		}
		text, err := fs.ReadFile(sdk, name)
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
				lines++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines of Go", lines)
	if lines == 0 || lines >= maxLines {
		t.Errorf("the SDK has %d lines of Go, want fewer than %d", lines, maxLines)
	}
	testPlugin(t, dir)
}

// testPlugin runs the plugin's own tests, without a network.
func testPlugin(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

// TestTemplates writes a plugin of each template: it passes its own tests, and go vet and gofmt have nothing to say.
func TestTemplates(t *testing.T) {
	for _, template := range scaffold.Templates() {
		t.Run(template, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "my-plugin")
			if err := scaffold.Write(dir, "my-plugin", "go", template); err != nil {
				t.Fatal(err)
			}
			testPlugin(t, dir)
			if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("gofmt: %v\n%s", err, out)
			}
		})
	}
	if err := scaffold.CheckTemplate("loop"); err == nil || !strings.Contains(err.Error(), "boost, control-loop, inject, policy") {
		t.Errorf("a template that there is not: %v", err)
	}
}
