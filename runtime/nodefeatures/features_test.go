package nodefeatures_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmproxy/wasmproxy/runtime/nodefeatures"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

var update = flag.Bool("update", false, "write the golden file")

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node is as containerd 2.4.2 answers, with a second handler that lacks user namespaces.
func node() *status.Status {
	all := status.Handler{RecursiveReadOnlyMounts: true, UserNamespaces: true}
	runc, sandboxed := all, all
	runc.Name, sandboxed.Name, sandboxed.UserNamespaces = "runc", "sandboxed", false
	return &status.Status{
		Now: now, Started: now.Add(-time.Hour),
		Backend: status.Backend{Connected: true, Name: "containerd", Version: "v2.4.2", Handlers: []status.Handler{all, runc, sandboxed}},
		Cgroup:  status.Cgroup{Root: "/sys/fs/cgroup", Version: 2, Driver: "systemd"},
		Plugins: status.Plugins{Plugins: []status.Plugin{
			{ID: "10-qos", State: status.Active, Active: &status.Version{Version: "1.0.0"}},
			{ID: "20-koordlet", State: status.Active},
			{ID: "30-off", State: status.Disabled},
			{ID: "40-bad", State: status.Inactive, Pending: &status.Version{State: "failed"}},
		}},
	}
}

// The file of a node with two handlers.
func TestFileOfANodeWithTwoHandlers(t *testing.T) {
	got := nodefeatures.Text(node(), now.Add(time.Hour))
	golden := filepath.Join("testdata", "two-handlers.features")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is\n%s\nwant\n%s (%v)", got, want, err)
	}
}

// labels returns the labels of a file, which Kubernetes must accept.
func labels(t *testing.T, text []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		for _, wrong := range append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...) {
			t.Errorf("%q: %s", line, wrong)
		}
		if _, twice := all[name]; twice {
			t.Errorf("label %s is there twice", name)
		}
		all[name] = value
	}
	return all
}

// No text of a plugin or the runtime adds a line, or makes a label that Kubernetes refuses.
func TestTextsBecomeValidLabels(t *testing.T) {
	const prefix = "feature.node.kubernetes.io/wasmproxy-"
	s := node()
	s.Backend.Version = "1.6.20~ds1"
	s.Backend.Handlers = []status.Handler{{Name: "kata\nexample.com/admin=true"}, {Name: strings.Repeat("x", 64)}, {Name: "kata-"}, {Name: "gvisor", UserNamespaces: true}}
	version := func(v string) *status.Version { return &status.Version{Version: v} }
	s.Plugins.Plugins = []status.Plugin{
		{ID: "10-a", State: status.Active, Active: version("1\nexample.com/admin=true\n# +no-label")},
		{ID: "20-b", State: status.Active, Active: version(strings.Repeat("é", 100) + "1")},
		{ID: "30-c", State: status.Active, Active: version("\n")},
		{ID: "40 d=e", State: status.Active, Active: version("1")},
		{ID: "50-e", State: status.Active, Active: version(strings.Repeat("1.", 100))},
	}
	text := nodefeatures.Text(s, now)
	want := map[string]string{
		"runtime.name": "containerd", "runtime.version": "1.6.20-ds1", "cgroup.version": "v2", "cgroup.driver": "systemd",
		"handler.gvisor": "true", "user-namespaces.gvisor": "true",
		"plugin.10-a": "1-example.com-admin-true-no-label", "plugin.20-b": "1", "plugin.30-c": "true", "plugin.50-e": strings.Repeat("1.", 31) + "1",
	}
	got := labels(t, text)
	for name, value := range want {
		if got[prefix+name] != value {
			t.Errorf("%s is %q, want %q", name, got[prefix+name], value)
		}
	}
	if len(got) != len(want) || !strings.Contains(string(text), "too many: 4\n") {
		t.Errorf("the file has %d labels, want %d:\n%s", len(got), len(want), text)
	}
}

// NFD ignores a file of more than 64 KiB.
func TestFileOfManyPlugins(t *testing.T) {
	s := node()
	for range 2000 {
		id := strings.Repeat("p", 40) + string(rune('a'+len(s.Plugins.Plugins)%26)) + strings.Repeat("q", len(s.Plugins.Plugins)%5)
		s.Plugins.Plugins = append(s.Plugins.Plugins, status.Plugin{ID: id, State: status.Active, Active: &status.Version{Version: strings.Repeat("9", 70)}})
	}
	if text := nodefeatures.Text(s, now); len(text) > 64<<10 || !strings.Contains(string(text), "wasmproxy-handler.runc=true") {
		t.Errorf("the file has %d bytes", len(text))
	}
}
