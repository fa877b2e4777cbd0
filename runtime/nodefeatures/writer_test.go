package nodefeatures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/nodefeatures"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// The file is written when the node changes or its end comes near, and else left alone. A runtime
// that does not answer leaves it as it is. Nothing else stays in the directory, which is made.
func TestWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "features.d", "wasmproxy")
	w := nodefeatures.NewWriter(path)
	s := node()
	write := func() (text string, inode os.FileInfo) {
		t.Helper()
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o644 {
			t.Fatalf("the file is %v (%v)", info.Mode(), err)
		}
		return string(b), info
	}
	_, first := write()
	s.Now = now.Add(10 * time.Minute)
	if _, again := write(); !os.SameFile(first, again) {
		t.Error("the file of the same node was written again")
	}
	s.Plugins.Plugins = s.Plugins.Plugins[1:]
	if text, _ := write(); strings.Contains(text, "10-qos") || !strings.Contains(text, "# +expiry-time=2026-01-02T04:14:05Z\n") {
		t.Errorf("the plugin is gone, and the file is\n%s", text)
	}
	s.Now = now.Add(31 * time.Minute)
	if text, _ := write(); !strings.Contains(text, "# +expiry-time=2026-01-02T04:35:05Z\n") {
		t.Errorf("the file was not renewed:\n%s", text)
	}
	s.Backend = status.Backend{Name: "containerd"}
	if text, _ := write(); !strings.Contains(text, "wasmproxy-handler.runc=true") {
		t.Errorf("the runtime does not answer, and the file is\n%s", text)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v (%v)", entries, err)
	}
}

// A restart of the proxy keeps the labels of plugins until they are loaded again, but not for ever.
func TestFirstFileWaitsForPlugins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wasmproxy")
	const before = "feature.node.kubernetes.io/wasmproxy-plugin.10-qos=1.0.0\n"
	if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	s := node()
	s.Started = now.Add(-time.Second)
	s.Plugins.Plugins = []status.Plugin{{ID: "10-qos", State: status.Inactive, Pending: &status.Version{State: "loading"}}}
	w := nodefeatures.NewWriter(path)
	for after, want := range map[time.Duration]bool{0: true, 2 * time.Minute: false} {
		s.Now = now.Add(after)
		if err := nodefeatures.NewWriter(path).Write(s); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if kept := string(text) == before; kept != want || err != nil {
			t.Errorf("after %v the file before is there: %v, want %v", after, kept, want)
		}
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Now, s.Plugins.Plugins[0].State = now, status.Active
	if err := w.Write(s); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "plugin.10-qos=true") || string(text) == before {
		t.Errorf("the plugin is active, and the file is %s (%v)", text, err)
	}
}

// A directory that cannot be made is an error that names the file.
func TestWriterFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, "wasmproxy")
	if err := nodefeatures.NewWriter(path).Write(node()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}
