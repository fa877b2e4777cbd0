package main

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// answer is what a build of the plugin makes of an event.
type answer struct {
	changes map[string]string
	log     []string // as "warn: text"
	err     error
}

// builds are the three forms of the plugin that every case is played to.
var builds = map[string]func(*testing.T) func(*testing.T, testCase, abi.Hook) answer{
	"native": func(*testing.T) func(*testing.T, testCase, abi.Hook) answer { return native },
	"tinygo": func(t *testing.T) func(*testing.T, testCase, abi.Hook) answer { return open(t, "qos.wasm").play },
	"go":     func(t *testing.T) func(*testing.T, testCase, abi.Hook) answer { return open(t, goBuild(t)).play },
}

func native(t *testing.T, tc testCase, hook abi.Hook) answer {
	var log bytes.Buffer
	got, err := sdktest.Case{
		Hook: hook, Cgroup: tc.mode, Pod: sdktest.Fields{"annotations": tc.annotations},
		Container: sdktest.Fields{"name": "web", "resources.cpu_quota": tc.quota},
	}.Call(t, sdktest.Native(t, "", slog.New(slog.NewTextHandler(&log, nil))))
	return answer{got, strings.FieldsFunc(log.String(), func(r rune) bool { return r == '\n' }), err}
}

// module is a .wasm file in the proxy's own engine.
type module struct {
	engine *wasm.Engine
	code   []byte
	pages  uint32
}

func open(t testing.TB, file string) *module {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	m := &module{engine: engine, code: code}
	kept, err := m.load(t.Context(), simulate.LoadOptions{}) // so that the code is compiled once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close(context.Background()) })
	return m
}

func (m *module) load(ctx context.Context, o simulate.LoadOptions) (plugin.Plugin, error) {
	return m.engine.Load(ctx, "qos", m.code, wasm.PluginOptions{Timeout: 10 * time.Second,
		Granted: o.Granted, Features: o.Features, Observer: o.Observer, KV: o.KV, Metrics: o.Metrics, Set: abi.Limits{Memory: int64(m.pages) << 16},
	})
}

func (m *module) play(t *testing.T, tc testCase, hook abi.Hook) answer {
	got, err := simulate.RunCase(t.Context(), tc.fixture(hook), func(o simulate.LoadOptions) (plugin.Plugin, error) { return m.load(t.Context(), o) })
	if err != nil {
		t.Fatal(err)
	}
	return answer{got.Changes, got.Log, got.Err}
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

const (
	burst = "container cgroup file cpu.max.burst"
	idle  = "container cgroup file cpu.idle"
	high  = `container.resources.unified["memory.high"]`
)

var (
	hooks = []abi.Hook{abi.PreCreateContainer, abi.PreUpdateContainerResources}
)

// testCase is a pod with these annotations, and a container called web.
type testCase struct {
	name        string
	hooks       []abi.Hook
	mode        string // of the cgroups
	annotations map[string]string
	quota       int
	want        sdktest.Changes
	err         string // a part of it
	log         string // a part of it; nothing is logged if it is ""
}

func (tc testCase) fixture(hook abi.Hook) fixture.Case {
	return fixture.Case{
		Name: tc.name, Hook: hook, Grant: abi.DefaultGrant(), Cgroup: tc.mode, Pod: fixture.Fields{"annotations": tc.annotations},
		Container: fixture.Fields{"name": "web", "resources.cpu_quota": int64(tc.quota)},
	}
}

var cases = []testCase{
	{name: "no annotation", hooks: hooks, mode: "v2", annotations: map[string]string{"qos.wasmproxy.io/cpu-burst.other": "1", "cpu-idle": "1"}, want: sdktest.Changes{}},
	{name: "everything", hooks: hooks, mode: "v2", quota: 100_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "268435456"},
		want:        sdktest.Changes{burst: "50000", idle: "1", high: "268435456"}},
	{name: "everything on v1", hooks: hooks, mode: "v1", quota: 100_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "0", "qos.wasmproxy.io/memory-high": "268435456"},
		want:        sdktest.Changes{burst: "50000", idle: "0"},
		log:         "qos.wasmproxy.io/memory-high needs cgroup v2, and this node has v1: not set"},
	{name: "the container's own first", hooks: hooks, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "1000", "qos.wasmproxy.io/cpu-burst.web": "2000", "qos.wasmproxy.io/cpu-idle.db": "1"},
		want:        sdktest.Changes{burst: "2000"}},
	{name: "a burst above the quota", hooks: hooks, mode: "v1", quota: 20_000,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"},
		want:        sdktest.Changes{burst: "20000"},
		log:         "qos.wasmproxy.io/cpu-burst 50000 is above the CPU quota: cut to 20000"},
	{name: "a burst without a quota", hooks: hooks, mode: "v2", quota: -1,
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"}, want: sdktest.Changes{burst: "50000"}},
	{name: "the largest numbers", hooks: hooks, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "17592186044415", "qos.wasmproxy.io/memory-high": "9223372036854775807"},
		want:        sdktest.Changes{burst: "17592186044415", high: "9223372036854775807"}},
	{name: "no number", hooks: hooks, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst.web": "2ms", "qos.wasmproxy.io/cpu-idle": "1"},
		err:         `annotation qos.wasmproxy.io/cpu-burst.web: "2ms" is not a whole number from 0 to 17592186044415 (microseconds)`},
	{name: "too large a number", hooks: hooks, mode: "v2",
		annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "17592186044416"},
		err:         `annotation qos.wasmproxy.io/cpu-burst: "17592186044416" is not a whole number`},
	{name: "empty", hooks: hooks, mode: "v1", annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": ""},
		err: `annotation qos.wasmproxy.io/cpu-idle: "" is not a whole number from 0 to 1 (0 or 1)`},
	{name: "a memory.high of nothing", hooks: hooks, mode: "v1", annotations: map[string]string{"qos.wasmproxy.io/memory-high": "0"},
		err: `annotation qos.wasmproxy.io/memory-high: "0" is not a whole number from 1 to 9223372036854775807 (bytes)`},
	{name: "no cgroups", hooks: hooks, annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": "1"},
		err: `annotation qos.wasmproxy.io/cpu-idle: SetCgroup cpu.idle: unsupported`},
}

// TestQoS plays the same events to all builds of the plugin.
func TestQoS(t *testing.T) {
	for build, open := range builds {
		t.Run(build, func(t *testing.T) {
			play := open(t)
			for _, tc := range cases {
				for _, hook := range tc.hooks {
					t.Run(tc.name+"/"+hook.String(), func(t *testing.T) { tc.check(t, play(t, tc, hook)) })
				}
			}
		})
	}
}

func (tc testCase) check(t *testing.T, got answer) {
	if !maps.Equal(got.changes, tc.want) {
		t.Errorf("asked for %v, want %v", got.changes, tc.want)
	}
	if (got.err == nil) != (tc.err == "") || got.err != nil && !strings.Contains(got.err.Error(), tc.err) {
		t.Errorf("error %v, want %q", got.err, tc.err)
	}
	if (len(got.log) == 0) != (tc.log == "") || !strings.Contains(strings.Join(got.log, "\n"), tc.log) || len(got.log) > 1 {
		t.Errorf("logged %q, want one line with %q", got.log, tc.log)
	}
}

// TestManifestIsTheSame keeps the committed file in step with the source, as far
// as a test can without TinyGo; plugins.sh --check compares its bytes.
func TestManifestIsTheSame(t *testing.T) {
	for _, file := range []string{"qos.wasm", goBuild(t)} {
		p, err := open(t, file).load(t.Context(), simulate.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m := p.Manifest()
		if m.Name != "qos" || strings.Join(m.HookSet().Names(), " ") != "PreCreateContainer PreUpdateContainerResources Synchronize" {
			t.Errorf("%s: %+v", file, m)
		}
		p.Close(t.Context())
	}
}

// everything are all annotations of the plugin.
var everything = testCase{mode: "v1", quota: 20_000, annotations: map[string]string{
	"qos.wasmproxy.io/cpu-burst": "50000", "qos.wasmproxy.io/cpu-idle": "1", "qos.wasmproxy.io/memory-high": "1",
}}

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
		t.Run(name, func(t *testing.T) {
			m := open(t, tc.file)
			m.pages = tc.pages
			s := m.simulate(t)
			for n := range tc.calls {
				if err := s.Call(t.Context()); err != nil {
					t.Fatalf("call %d: %v", n, err)
				}
			}
		})
	}
}

// simulate has the plugin in front of a call of CreateContainer, which fails if the plugin does.
func (m *module) simulate(t testing.TB) *simulate.Simulator {
	t.Helper()
	event, err := simulate.FromFixture(everything.fixture(abi.PreCreateContainer), 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.Open(t.Context(), event, simulate.Options{
		ID: "10-qos", Policy: plugin.Fail, Load: func(o simulate.LoadOptions) (plugin.Plugin, error) { return m.load(t.Context(), o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// BenchmarkCall is one call of the TinyGo build with all annotations set.
func BenchmarkCall(b *testing.B) {
	s := open(b, "qos.wasm").simulate(b)
	for b.Loop() {
		if err := s.Call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
