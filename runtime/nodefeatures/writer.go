package nodefeatures

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

const (
	// lifetime is how long labels stay when no proxy renews the file, since it has ended for good
	// or its setting is gone.
	lifetime = time.Hour
	// renewal is how often a file that is the same is written with a later end.
	renewal = 20 * time.Minute
	// startTime is how long the first file waits for plugins.
	startTime = time.Minute
)

// Writer keeps a file up to date. It is for one goroutine.
type Writer struct {
	path    string
	text    []byte // of the file, without its end
	written time.Time
}

// NewWriter returns the writer of a file.
func NewWriter(path string) *Writer { return &Writer{path: path} }

// Write replaces the file if the node has changed, or the file is to be renewed. It is whole at any
// moment, and anyone may read it. While the container runtime does not answer, the file stays.
func (w *Writer) Write(s *status.Status) error {
	if !s.Backend.Connected || s.Backend.Name == "" {
		return nil
	}
	// Plugins may be loading for the first time. The file of the proxy before has them, and their labels are not to go for a moment.
	loading := func(p status.Plugin) bool {
		return p.State != status.Active && p.Pending != nil && p.Pending.State != "failed"
	}
	if w.written.IsZero() && s.Now.Sub(s.Started) < startTime && slices.ContainsFunc(s.Plugins.Plugins, loading) {
		return nil
	}
	text := Text(s, time.Time{})
	if bytes.Equal(text, w.text) && s.Now.Sub(w.written) < renewal {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o755); err != nil {
		return fmt.Errorf("making the directory of %s: %w", w.path, err)
	}
	if err := regular.Replace(w.path, Text(s, s.Now.Add(lifetime)), 0o644); err != nil { // NFD ignores its hidden draft
		return fmt.Errorf("writing %s: %w", w.path, err)
	}
	w.text, w.written = text, s.Now
	return nil
}
