package main

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// builds are the three forms of the plugin that every case is played to.
var builds = map[string]func(*testing.T, *slog.Logger) plugin.Plugin{
	"native": func(t *testing.T, log *slog.Logger) plugin.Plugin { return sdktest.Native(t, "", log) },
	"tinygo": func(t *testing.T, log *slog.Logger) plugin.Plugin { return load(t, "qos.wasm", log, 0) },
	"go":     func(t *testing.T, log *slog.Logger) plugin.Plugin { return load(t, goBuild(t), log, 0) },
}

// goBuild builds the plugin with standard Go and returns the file.
func goBuild(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "qos.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// load runs a .wasm file in the proxy's own engine.
func load(t *testing.T, file string, log *slog.Logger, pages uint32) plugin.Plugin {
	t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(t.Context()) })
	p, err := engine.Load(t.Context(), "qos", module, wasm.PluginOptions{Log: log, MemoryPages: pages})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(t.Context()) })
	return p
}

// files are the cgroup files of a node with this mode.
func files(t *testing.T, mode string) *cgroup.FS {
	t.Helper()
	fs, err := cgroup.Open(t.TempDir(), mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

const (
	burst = "container cgroup file cpu.max.burst"
	idle  = "container cgroup file cpu.idle"
	high  = `container.resources.unified["memory.high"]`
)

var (
	create3 = []abi.Hook{abi.PreCreateContainer, abi.PreUpdateContainerResources}
	start1  = []abi.Hook{abi.PreStartContainer}
	all     = append(start1, create3...)
)

var cases = []struct {
	name        string
	hooks       []abi.Hook
	mode        string // of the cgroups
	annotations map[string]string
	quota       int
	want        sdktest.Changes
	err         string // a part of it
	log         string // a part of it; nothing is logged if it is ""
}{
	{name: "no annotation", hooks: all, mode: "v2", annotations: map[string]string{"qos.wasmproxy.io/cpu-burst.other": "1", "cpu-idle": "1"}, want: sdktest.Changes{}},
	{name: "everything", hooks: create3, mode: "v2", quota: 100_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "268435456"},
		want:        sdktest.Changes{burst: "50000", idle: "1", high: "268435456"}},
	{name: "everything at the start", hooks: start1, mode: "v2", quota: 100_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "268435456"},
		want:        sdktest.Changes{burst: "50000", idle: "1"}},
	{name: "everything on v1", hooks: create3, mode: "v1", quota: 100_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "0", "qos.wasmproxy.io/memory-high": "268435456"},
		want:        sdktest.Changes{burst: "50000", idle: "0"},
		log:         "qos.wasmproxy.io/memory-high needs cgroup v2, and this node has v1: not set"},
	{name: "the container's own first", hooks: all, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "1000", "qos.wasmproxy.io/cpu-burst.web": "2000", "qos.wasmproxy.io/cpu-idle.db": "1"},
		want:        sdktest.Changes{burst: "2000"}},
	{name: "a burst above the quota", hooks: all, mode: "v1", quota: 20_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"},
		want:        sdktest.Changes{burst: "20000"},
		log:         "qos.wasmproxy.io/cpu-burst 50000 is above the CPU quota: cut to 20000"},
	{name: "a burst without a quota", hooks: all, mode: "v2", quota: -1,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"}, want: sdktest.Changes{burst: "50000"}},
	{name: "the largest numbers", hooks: create3, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "17592186044415", "qos.wasmproxy.io/memory-high": "9223372036854775807"},
		want:        sdktest.Changes{burst: "17592186044415", high: "9223372036854775807"}},
	{name: "no number", hooks: all, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst.web": "2ms", "qos.wasmproxy.io/cpu-idle": "1"},
		err:         `annotation qos.wasmproxy.io/cpu-burst.web: "2ms" is not a whole number from 0 to 17592186044415 (microseconds)`},
	{name: "too large a number", hooks: all, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "17592186044416"},
		err:         `annotation qos.wasmproxy.io/cpu-burst: "17592186044416" is not a whole number`},
	{name: "empty", hooks: all, mode: "v1", annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": ""},
		err: `annotation qos.wasmproxy.io/cpu-idle: "" is not a whole number from 0 to 1 (0 or 1)`},
	{name: "a memory.high of nothing", hooks: create3, mode: "v1", annotations: map[string]string{"qos.wasmproxy.io/memory-high": "0"},
		err: `annotation qos.wasmproxy.io/memory-high: "0" is not a whole number from 1 to 9223372036854775807 (bytes)`},
	{name: "no cgroups", hooks: all, annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": "1"},
		err: `annotation qos.wasmproxy.io/cpu-idle: SetCgroup cpu.idle: unsupported`},
}

// TestQoS plays the same events to all builds of the plugin.
func TestQoS(t *testing.T) {
	for build, plugin := range builds {
		t.Run(build, func(t *testing.T) {
			var log bytes.Buffer
			p := plugin(t, slog.New(slog.NewTextHandler(&log, nil)))
			for _, tc := range cases {
				for _, hook := range tc.hooks {
					t.Run(tc.name+"/"+hook.String(), func(t *testing.T) {
						log.Reset()
						c := sdktest.Case{
							Hook:      hook,
							Pod:       sdktest.Fields{"annotations": tc.annotations},
							Container: sdktest.Fields{"name": "web", "resources.cpu_quota": tc.quota},
						}
						if tc.mode != "" {
							c.Files = files(t, tc.mode)
						}
						got, err := c.Call(t, p)
						if !maps.Equal(got, tc.want) {
							t.Errorf("asked for %v, want %v", got, tc.want)
						}
						if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
							t.Errorf("error %v, want %q", err, tc.err)
						}
						if (log.Len() == 0) != (tc.log == "") || !strings.Contains(log.String(), tc.log) || strings.Count(log.String(), "\n") > 1 {
							t.Errorf("logged %q, want one line with %q", log.String(), tc.log)
						}
					})
				}
			}
		})
	}
}

// TestManifestIsTheSame keeps the committed file in step with the source, as far
// as a test can without TinyGo; plugins.sh --check compares its bytes.
func TestManifestIsTheSame(t *testing.T) {
	for name, build := range builds {
		m := build(t, nil).Manifest()
		if m.Name != "qos" || strings.Join(m.HookSet().Names(), " ") != "PreCreateContainer PreStartContainer PreUpdateContainerResources" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestMemoryIsReclaimed makes more calls than would fit into the memory if the
// guest never freed anything: nothing resets an instance between two calls.
func TestMemoryIsReclaimed(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string
		pages uint32
		calls int
	}{
		"tinygo": {"qos.wasm", 2, 5_000},    // all the memory that the module starts with
		"go":     {goBuild(t), 130, 20_000}, // 8 MiB; without a collection 100 pages were full after 9,075 calls
	} {
		t.Run(name, func(t *testing.T) { callOften(t, load(t, tc.file, nil, tc.pages), tc.calls) })
	}
}

func callOften(t *testing.T, p plugin.Plugin, calls int) {
	t.Helper()
	c := sdktest.Case{
		Hook: abi.PreCreateContainer, Files: files(t, "v1"),
		Pod: sdktest.Fields{"annotations": map[string]string{
			"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "1",
		}},
		Container: sdktest.Fields{"name": "web", "resources.cpu_quota": 20_000},
	}
	for n := range calls {
		if _, err := c.Call(t, p); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
	}
}

// BenchmarkCall is one call of the TinyGo build with all annotations set.
func BenchmarkCall(b *testing.B) {
	module, err := os.ReadFile("qos.wasm")
	if err != nil {
		b.Fatal(err)
	}
	engine, err := wasm.NewEngine(b.Context(), wasm.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close(b.Context())
	p, err := engine.Load(b.Context(), "qos", module, wasm.PluginOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close(b.Context())
	fs, err := cgroup.Open(b.TempDir(), "v2")
	if err != nil {
		b.Fatal(err)
	}
	defer fs.Close()
	event := sdktest.Case{
		Hook:      abi.PreCreateContainer,
		Pod:       sdktest.Fields{"annotations": map[string]string{"qos.wasmproxy.io/cpu-burst": "5", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "1"}},
		Container: sdktest.Fields{"name": "web", "resources.cpu_quota": 20_000},
	}.NewEvent(b)
	for b.Loop() {
		if err := p.Call(b.Context(), nil, event, plugin.NewAdjustment(abi.PreCreateContainer, fs)); err != nil {
			b.Fatal(err)
		}
	}
}
