package plugin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestManifest(t *testing.T) {
	got, err := plugin.ParseManifest([]byte(`{
		"name":"a","version":"1","sdk":"go","later":{"minor":1},
		"hooks":["PreCreateContainer",{"hook":"Tick"},{"hook":"PreRunPodSandbox","match":{"namespaces":["prod-*"],"labels":{"tier":"gold"}}}],
		"capabilities":["env","teleport"],"limits":{"fuel":1,"memory":2,"time_ms":3,"host_calls":4,"tick_host_calls":5,"tick_fuel":6,"tick_time_ms":7},
		"state":"instance","tick_ms":1000,"durable":["seen/",""],"optional":["random"],"config_schema":{"type":"object"}}`))
	want := abi.Manifest{
		Name: "a", Version: "1", SDK: "go",
		Hooks: []abi.ManifestHook{{Hook: "PreCreateContainer"}, {Hook: "Tick"},
			{Hook: "PreRunPodSandbox", Match: abi.Match{Namespaces: []string{"prod-*"}, Labels: map[string]string{"tier": "gold"}}}},
		Capabilities: []string{"env", "teleport"}, Limits: abi.Limits{Fuel: 1, Memory: 2, TimeMS: 3, HostCalls: 4, TickHostCalls: 5, TickFuel: 6, TickTimeMS: 7},
		State: abi.StateInstance, TickMS: 1000, Durable: []string{"seen/", ""}, Optional: []string{"random"}, ConfigSchema: `{"type":"object"}`,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if declared, unknown := got.Declared(); declared != abi.CapabilitySetOf(abi.Env) || len(unknown) != 1 || unknown[0] != "teleport" {
		t.Errorf("declares %v and %q", declared.Names(), unknown)
	}
	if hooks := got.HookSet(); hooks != abi.HookSetOf(abi.PreCreateContainer, abi.Tick, abi.PreRunPodSandbox) {
		t.Errorf("wants %v", hooks.Names())
	}
}

// A hook that the host does not have is no reason to refuse a plugin that can do without it.
func TestOptionalHook(t *testing.T) {
	m, err := plugin.ParseManifest([]byte(`{"name":"a","version":"1","hooks":["PreLunch","PreExec"],"optional":["PreLunch"]}`))
	if err != nil || m.HookSet() != abi.HookSetOf(abi.PreExec) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestManifestRefused(t *testing.T) {
	for more, want := range map[string]string{
		`"hooks":["PreCreateContainer","PreCreateContainer"]`: "hooks holds PreCreateContainer twice",
		`"hooks":[{"hook":"PreLunch"}]`:                       `hooks holds "PreLunch", which this host does not have`,
		`"hooks":["PreLunch"],"optional":["PreLunch"]`:        "hooks holds none that this host has",
		`"hooks":["PreLunch","PreExec"],"optional":["lunch"]`: `hooks holds "PreLunch", which this host does not have`,
		`"hooks":[{}]`: `hooks holds "", which`,
		`"hooks":[7]`:  "not the JSON it should be",
		`"hooks":[{"hook":"PreExec","match":{"namespaces":["["]}}]`: "hooks: PreExec: match: namespaces",
		`"hooks":["Tick"]`:                                                                 "tick_ms is 0, hook Tick needs 1000 or more",
		`"hooks":["Tick"],"tick_ms":999`:                                                   "tick_ms is 999, hook Tick needs 1000 or more",
		`"hooks":["Tick"],"tick_ms":18446744073710`:                                        "tick_ms is 18446744073710, and may be at most 9223372036854",
		`"hooks":["PreExec"],"tick_ms":1000`:                                               "tick_ms is for plugins with hook Tick",
		`"hooks":["PreExec"],"durable":["` + strings.Repeat("x", 257) + `"]`:               "durable holds a prefix of 257 bytes, a key of kv has at most 256",
		`"hooks":["PreExec"],"durable":["x"` + strings.Repeat(`,"x"`, 64) + `]`:            "durable holds 65 prefixes, the limit is 64",
		`"hooks":["PreExec"],"state":"disk"`:                                               `state "disk" is neither "none" nor "instance"`,
		`"hooks":["PreExec"],"limits":{"memory":-1}`:                                       "limits.memory is -1",
		`"hooks":["PreExec"],"limits":{"fuel":"1"}`:                                        "not the JSON it should be",
		`"hooks":["PreExec"],"capabilities":"env"`:                                         "not the JSON it should be",
		`"hooks":["PreExec"],"description":"` + strings.Repeat("x", abi.MaxManifest) + `"`: "the limit is 16384",
	} {
		m, err := plugin.ParseManifest([]byte(`{"name":"a","version":"1",` + more + `}`))
		if err == nil || !strings.Contains(err.Error(), want) || m.Name != "" {
			t.Errorf("%.80s: got %v, want %q", more, err, want)
		}
	}
}
