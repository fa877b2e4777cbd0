package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Change is a text of a source file, and what it becomes. The file must have the text once.
type Change struct {
	File     string // of the project
	From, To string
}

// read returns the file's text with the change.
func (c Change) read(root string) ([]byte, error) {
	file := filepath.Join(root, c.File)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), c.From); n != 1 {
		return nil, fmt.Errorf("%s has the text %q %d times, want once: change the test that replaces it", file, c.From, n)
	}
	return []byte(strings.Replace(string(text), c.From, c.To, 1)), nil
}

// ChangedPlugin builds a plugin that ships with wasmproxy from a copy of its source with changes.
func (b *Builder) ChangedPlugin(ctx context.Context, file, name string, changes ...Change) error {
	project, err := os.MkdirTemp("", "changed-plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(project)
	for _, part := range []string{"abi", "sdk", "plugins-wasm"} {
		if err := os.CopyFS(filepath.Join(project, part), os.DirFS(b.ProjectFile(part))); err != nil {
			return err
		}
	}
	for _, part := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(b.ProjectFile(part))
		if err == nil {
			err = os.WriteFile(filepath.Join(project, part), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range changes {
		text, err := c.read(project)
		if err == nil {
			err = os.WriteFile(filepath.Join(project, c.File), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return b.TinyGoPlugin(ctx, file, filepath.Join(project, "plugins-wasm", name))
}

// Planted builds wasmproxy with a defect.
func (b *Builder) Planted(ctx context.Context, file string, defect Change) error {
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := defect.read(b.project)
	if err != nil {
		return err
	}
	source, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{b.ProjectFile(defect.File): source}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return err
	}
	return run(ctx, b.project, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-overlay", overlay, "-o", file, "./cmd/wasmproxy")
}
