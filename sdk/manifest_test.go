package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
	chain "github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// FuzzManifest holds the hand-made encoder to encoding/json: what it writes is read
// as what was meant.
func FuzzManifest(f *testing.F) {
	f.Add("qos", "1.0.0", "bursts & <idle> time", "Apache-2.0", "prod-*", "tier", int64(0))
	f.Add("a", "\x00\x1f\x7f\"\\/", "\xff\xc0\xaf\xed\xa0\x80", "\u2028\u2029\ufffd\U0010ffff", "\b\f\n\r\t", "=", int64(-1<<63))
	f.Fuzz(func(t *testing.T, name, version, description, license, word, key string, n int64) {
		m := abi.Manifest{Name: name, Version: version, Description: description, License: license, SDK: word, State: word, TickMS: n}
		if word != "" {
			m.Capabilities = []string{version, word}
			m.Durable = []string{"", word}
			m.Limits = abi.Limits{Fuel: n, Memory: n / 2, TimeMS: 7, HostCalls: -n, TickHostCalls: n / 3, TickFuel: n / 5, TickTimeMS: 9}
			m.ConfigSchema = `{"type":"object"}`
		}
		match := Match{Namespaces: []string{word, name}, Containers: []string{name}, RuntimeHandlers: []string{key}, QoS: []string{"Burstable", word}, Labels: []string{key, "x=" + word}}
		var got struct {
			abi.Manifest
			Hooks        []json.RawMessage `json:"hooks"`
			ConfigSchema json.RawMessage   `json:"config_schema"`
		}
		ours := appendManifest(nil, m, []handler{{hook: abi.PreExec, match: []Match{match}}, {hook: abi.Tick}, {hook: abi.Tick}})
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("%v in %s", err, ours)
		}
		got.Manifest.ConfigSchema = string(got.ConfigSchema)
		if want := asJSON(t, m); !reflect.DeepEqual(got.Manifest, want) {
			t.Errorf("%s\nmeans %+v\nwant  %+v", ours, got.Manifest, want)
		}
		checkHooks(t, got.Hooks, match)
	})
}

// asJSON is what is left of a manifest in JSON: what is not UTF-8 is not.
func asJSON(t *testing.T, m abi.Manifest) abi.Manifest {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	after := abi.Manifest{ConfigSchema: m.ConfigSchema}
	if err := json.Unmarshal(b, &after); err != nil {
		t.Fatal(err)
	}
	return after
}

func checkHooks(t *testing.T, hooks []json.RawMessage, m Match) {
	t.Helper()
	if len(hooks) != 2 || string(hooks[1]) != `"Tick"` {
		t.Fatalf("hooks are %s", hooks)
	}
	var got abi.ManifestHook
	if err := json.Unmarshal(hooks[0], &got); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, pair := range m.Labels {
		key, value, _ := strings.Cut(pair, "=")
		labels[strings.ToValidUTF8(key, "")] = value
	}
	if !utf8.ValidString(strings.Join(m.Labels, "")) {
		labels = got.Match.Labels
	}
	want := asJSON(t, abi.Manifest{Hooks: []abi.ManifestHook{{Hook: "PreExec", Match: abi.Match{
		Namespaces: m.Namespaces, Containers: m.Containers, RuntimeHandlers: m.RuntimeHandlers, QoS: m.QoS, Labels: labels,
	}}}})
	if !reflect.DeepEqual([]abi.ManifestHook{got}, want.Hooks) {
		t.Errorf("hook is %+v, want %+v", got, want.Hooks)
	}
}

// What the SDK writes of a match is what the host reads and judges.
func TestManifestOfAMatch(t *testing.T) {
	register(t, func() {
		Plugin("p", "1").OnPreExec(func(*PreExec) error { return nil }, Match{
			Namespaces: []string{"prod-*", "!prod-test"}, RuntimeHandlers: []string{"kata"}, Annotations: []string{"a=b=c", "d", "e=!*"},
		})
	})
	m, err := chain.ParseManifest(manifest())
	if err != nil {
		t.Fatal(err)
	}
	want := abi.Match{Namespaces: []string{"prod-*", "!prod-test"}, RuntimeHandlers: []string{"kata"},
		Annotations: map[string]string{"a": "b=c", "d": "", "e": "!*"}}
	if got := m.Hooks[0].Match; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestManifestNamesAHookOnce(t *testing.T) {
	register(t, func() {
		none := func(*PostStopContainer) error { return nil }
		Plugin("p", "1").Needs(CapEnv, CapMounts).KeepMemory().OnPostStopContainer(none).
			OnTick(func(*Tick) error { return nil }, 1500).
			OnPreRunPodSandbox(func(*PreRunPodSandbox) error { return nil }, Match{Labels: []string{"tier=gold"}}).
			OnPostStopContainer(none)
	})
	m, err := chain.ParseManifest(manifest())
	if err != nil {
		t.Fatal(err)
	}
	want := abi.Manifest{
		Name: "p", Version: "1", SDK: "go 0.1.0 (gc)", Capabilities: []string{"env", "mounts"}, State: abi.StateInstance, TickMS: 1500,
		Hooks: []abi.ManifestHook{{Hook: "PostStopContainer"}, {Hook: "Tick"},
			{Hook: "PreRunPodSandbox", Match: abi.Match{Labels: map[string]string{"tier": "gold"}}}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// The proxy wakes a plugin once for a hook, so two handlers cannot have matches.
func TestTwoHandlersAndAMatchAbort(t *testing.T) {
	none := func(*PostStopContainer) error { return nil }
	for name, f := range map[string]func(*Registration){
		"two matches":         func(r *Registration) { r.OnPostStopContainer(none, Match{}, Match{}) },
		"a handler too many":  func(r *Registration) { r.OnPostStopContainer(none, Match{}).OnPostStopContainer(none) },
		"a match for another": func(r *Registration) { r.OnPostStopContainer(none).OnPostStopContainer(none, Match{}) },
	} {
		t.Run(name, func(t *testing.T) {
			register(t, func() {
				Plugin("p", "1").OnPreStartContainer(func(*PreStartContainer) error { f(&plugin); return nil })
			})
			defer func() {
				if r, _ := recover().(string); !strings.Contains(r, "PostStopContainer has ") {
					t.Errorf("got %q", r)
				}
			}()
			sdktest.Case{Hook: abi.PreStartContainer}.Call(t, sdktest.Native(t, "", nil))
		})
	}
}

// register makes a plugin for one test: a real module registers only one.
func register(t *testing.T, f func()) {
	t.Helper()
	plugin = Registration{}
	t.Cleanup(func() { plugin = Registration{} })
	f()
}
