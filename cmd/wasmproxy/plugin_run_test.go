package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fixture means the same in plugin run as in plugin test: config, grant and match beside the plugin do not count, and a node has cgroup
// files only if the fixture says so. --cgroup says otherwise.
func TestFixtureMeansTheSame(t *testing.T) {
	dir := t.TempDir()
	module, err := os.ReadFile("../../plugins-wasm/qos/qos.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const fixture = `{"name": "idle", "hook": "PreCreateContainer", "pod": {"namespace": "prod", "annotations": {"qos.wasmproxy.io/cpu-idle": "1"}},
		"container": {"name": "web"}, "want": {"changes": {}}}`
	for file, text := range map[string]string{
		"qos.wasm": string(module), "qos.json": `{"match": {"namespaces": ["none"]}, "config": {"unknown": true}}`,
		"testdata/none.json": fixture,
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) string {
		var out, errs bytes.Buffer
		run(t.Context(), newRoot(""), append([]string{"plugin"}, args...), &out, &errs)
		return out.String() + errs.String()
	}
	event := filepath.Join(dir, "testdata/none.json")
	tested, ran := call("test", dir), call("run", filepath.Join(dir, "qos.wasm"), "--event", event)
	const refused = "the host refused container cgroup file cpu.idle: unsupported"
	if !strings.Contains(tested, refused) || !strings.Contains(ran, refused) {
		t.Errorf("plugin test:\n%s\nplugin run:\n%s", tested, ran)
	}
	if forced := call("run", filepath.Join(dir, "qos.wasm"), "--event", event, "--cgroup", "v2"); strings.Contains(forced, refused) || !strings.Contains(forced, "cpu.idle") {
		t.Errorf("plugin run --cgroup v2:\n%s", forced)
	}
}
