package main

import (
	"context"
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

const config = `{"groupIdentity": true}`

// player has a build of the plugin answer an event.
type player func(t *testing.T, hook abi.Hook, pod, container map[string]any) (changes map[string]string, err error)

// builds are the three forms of the plugin that every case is played to. The node has
// cgroup v2.
var builds = map[string]func(*testing.T) player{
	"native": func(*testing.T) player { return native },
	"tinygo": func(t *testing.T) player { return open(t, "koordlet.wasm") },
	"go":     func(t *testing.T) player { return open(t, goBuild(t)) },
}

func native(t *testing.T, hook abi.Hook, pod, container map[string]any) (map[string]string, error) {
	return sdktest.Case{Hook: hook, Pod: pod, Container: container, Cgroup: "v2"}.Call(t, sdktest.Native(t, config, nil))
}

// goBuild builds the plugin with standard Go and returns the file.
func goBuild(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "koordlet.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// open has a .wasm file answer in the proxy's own engine.
func open(t *testing.T, file string) player {
	t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	load := func(o simulate.LoadOptions) (plugin.Plugin, error) {
		return engine.Load(t.Context(), "koordlet", module, wasm.PluginOptions{
			Timeout: time.Minute, // a machine that stalls breaks no limit
			Config:  []byte(config), Granted: o.Granted, Features: o.Features, Observer: o.Observer,
		})
	}
	kept, err := load(simulate.LoadOptions{}) // so that the code is compiled once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close(context.Background()) })
	return func(t *testing.T, hook abi.Hook, pod, container map[string]any) (map[string]string, error) {
		t.Helper()
		answer, err := simulate.RunCase(t.Context(), fixture.Case{
			Hook: hook, Pod: pod, Container: container, Cgroup: "v2", Grant: abi.DefaultGrant(),
		}, load)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Changes, answer.Err
	}
}

// TestBuilds plays the same events to all builds of the plugin.
func TestBuilds(t *testing.T) {
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			play := build(t)
			testContainers(t, play)
			testGroupIdentity(t, play)
			testBadAnnotations(t, play)
			if name != "native" { // sdktest does not know what a list of CPUs is
				testBadCPUs(t, play)
			}
		})
	}
}

type fields = map[string]string

const (
	shares = "container.resources.cpu_shares"
	cfs    = "container.resources.cpu_quota"
	memory = "container.resources.memory_limit_in_bytes"
	cpus   = "container.resources.cpuset_cpus"
)

var spec = `{"containers":{"log":{"limits":{"kubernetes.io/batch-cpu":"100"}},
	"app":{"limits":{"kubernetes.io/batch-cpu":"1k","kubernetes.io/batch-memory":"512Mi"},"requests":{"kubernetes.io/batch-cpu":"500"}},
	"tiny":{"limits":{"kubernetes.io/batch-cpu":"1"}}, "free":{}}}`

var cases = []struct {
	name, container, class string
	annotations            fields
	memory                 int
	want                   sdktest.Changes
}{
	{"nothing", "app", "", nil, 0, sdktest.Changes{}},
	{"pinned", "app", "LSR", fields{statusKey: `{"cpuset":"0-1,4","numaNodeResources":[{"node":0,"resources":{"cpu":"3"}}]}`}, 0,
		sdktest.Changes{cpus: "0-1,4", cfs: "-1"}},
	{"pinned, after other keys", "app", "LSE", fields{statusKey: ` { "numaNodeResources" : [ {"node": 0, "x": "a]}\"" } ] , "cpuset" : "7" } `}, 0,
		sdktest.Changes{cpus: "7", cfs: "-1"}},
	{"bound to a NUMA node without CPUs", "app", "LS", fields{statusKey: `{"numaNodeResources":[{"node":0}]}`}, 0, sdktest.Changes{}},
	{"batch", "app", "BE", fields{specKey: spec}, 0, sdktest.Changes{shares: "512", cfs: "100000", memory: "536870912"}},
	{"batch, at the kernel's minimum", "tiny", "BE", fields{specKey: spec}, 0, sdktest.Changes{shares: "2", cfs: "1000"}},
	{"batch, without limits", "free", "BE", fields{specKey: spec}, 0, sdktest.Changes{shares: "2", cfs: "-1"}},
	{"batch, with a limit to lift", "free", "BE", fields{specKey: spec}, 1 << 20, sdktest.Changes{shares: "2", cfs: "-1", memory: "-1"}},
	{"batch, of another container", "other", "BE", fields{specKey: spec}, 0, sdktest.Changes{}},
	{"batch, and not best effort", "app", "LS", fields{specKey: spec}, 0, sdktest.Changes{}},
}

func testContainers(t *testing.T, play player) {
	for _, test := range cases {
		pod := map[string]any{"labels": fields{qosLabel: test.class}, "annotations": test.annotations}
		container := map[string]any{"name": test.container, "resources.memory_limit_in_bytes": int64(test.memory)}
		for _, hook := range []abi.Hook{abi.PreCreateContainer, abi.PreUpdateContainerResources} {
			if got, err := play(t, hook, pod, container); err != nil || !maps.Equal(got, test.want) {
				t.Errorf("%s, %s: got %v, %v; want %v", test.name, hook, got, err, test.want)
			}
		}
	}
}

func testGroupIdentity(t *testing.T, play player) {
	for class, want := range map[string]string{"LSR": "2", "LS": "2", "BE": "-1", "SYSTEM": "", "": ""} {
		got, err := play(t, abi.PreRunPodSandbox, map[string]any{"labels": fields{qosLabel: class}}, nil)
		if err != nil || got["pod cgroup file cpu.bvt_warp_ns"] != want {
			t.Errorf("class %q: got %v, %v; want %q", class, got, err, want)
		}
	}
}

// testBadCPUs wants the host's refusal of a list of CPUs to fail with the annotation's name.
func testBadCPUs(t *testing.T, play player) {
	pod := map[string]any{"labels": fields{qosLabel: "BE"}, "annotations": fields{statusKey: `{"cpuset":"all"}`}}
	got, err := play(t, abi.PreCreateContainer, pod, map[string]any{"name": "app"})
	if err == nil || !strings.Contains(err.Error(), statusKey) || len(got) > 0 {
		t.Errorf("got %v, error %v", got, err)
	}
}

// testBadAnnotations wants them to fail with the annotation's name, and set nothing.
func testBadAnnotations(t *testing.T, play player) {
	for bad, name := range map[string]string{
		`{"cpuset":"0-1`: statusKey, `[]`: statusKey, `{"cpuset" "0"}`: statusKey, `{cpuset:"0"}`: statusKey,
		`{"cpuset":`: statusKey, `{"cpuset":}`: statusKey, `{`: statusKey, ` `: statusKey,
		`{"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"-1"}}}}`:     specKey,
		`{"containers":{"app":{"limits":{"kubernetes.io/batch-memory":"2GB"}}}}`: specKey,
		`{"containers":{"app":7}}`: specKey,
	} {
		pod := map[string]any{"labels": fields{qosLabel: "BE"}, "annotations": fields{name: bad}}
		got, err := play(t, abi.PreCreateContainer, pod, map[string]any{"name": "app"})
		if err == nil || !strings.Contains(err.Error(), name) || len(got) > 0 {
			t.Errorf("%s: got %v, error %v", bad, got, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, want := range map[string]string{`{"groupIdentity": "perhaps"}`: `groupIdentity at byte 18: "perhaps" is not true or false`, `{`: "byte 1: a key in quotes is missing"} {
		if err := configure(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", config, err, want)
		}
	}
	for _, config := range []string{"", "{}", `{"groupIdentity": false}`} {
		identities = nil
		if err := configure(config); err != nil || identities != nil {
			t.Errorf("%s: %v, %v", config, err, identities)
		}
	}
}
