package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// manifested returns a guest of testdata/wat with a manifest in a custom section,
// which wins over its own. more are members, each with a comma before it.
func manifested(t *testing.T, guest, more string) []byte {
	t.Helper()
	return withSection(wat(t, guest), abi.ManifestSection,
		[]byte(`{"name":"p","version":"1","hooks":["PreCreateContainer"],"capabilities":["annotations","resources"]`+more+`}`))
}

// loadModule is load for a module that is not in testdata/wat as it is.
func loadModule(t *testing.T, e *Engine, module []byte, o PluginOptions) *guests {
	t.Helper()
	p, err := e.Load(t.Context(), "p", module, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return p.(*guests)
}

// TestSchema holds configs against the schema of a guest that would trap if it ran.
func TestSchema(t *testing.T) {
	e := newEngine(t, Options{})
	const limits = `,"config_schema":{"type":"object","properties":{"limits":{"properties":{"max":{"type":"integer"}}}},"required":["limits"]}`
	for _, tt := range []struct{ schema, config, want string }{
		{limits, `{"limits":{"max":"many"}}`, "loading plugin p: config: /limits/max: got string, want integer"},
		{limits, `{"limits":{"max":1,`, "config: not JSON, which the plugin's schema is for"},
		{limits, ``, "config: /: missing property 'limits'"},
		{`,"config_schema":{"type":"colour"}`, `{}`, "manifest: config_schema: /type: "},
		{`,"config_schema":"text"`, `{}`, "manifest: config_schema: "},
		{limits, `{"limits":{"max":3}}`, "trapped"}, // only now it runs
	} {
		_, err := e.Load(t.Context(), "p", manifested(t, "start-trap", tt.schema), PluginOptions{Config: []byte(tt.config)})
		wantError(t, err, tt.want)
		if ran := strings.Contains(err.Error(), "trapped"); ran != (tt.want == "trapped") {
			t.Errorf("%s: it ran: %v", tt.config, ran)
		}
	}
	none := loadModule(t, e, manifested(t, "quota", `,"config_schema":null`), PluginOptions{Config: []byte("no: JSON")})
	if none.Manifest().ConfigSchema != "" {
		t.Errorf("null is the schema %q", none.Manifest().ConfigSchema)
	}
}

// TestManifestBeforeConfigure has a guest whose own export is the manifest: it is
// asked for that, and no more, before its config is looked at.
func TestManifestBeforeConfigure(t *testing.T) {
	module := wat(t, "configure-trap")
	at := bytes.Index(module, []byte(`"hooks"`))
	if at < 0 {
		t.Fatal("configure-trap has no manifest")
	}
	module = bytes.Replace(bytes.Clone(module), []byte(`"hooks"`), []byte(`"hoops"`), 1)
	_, err := newEngine(t, Options{}).Load(t.Context(), "p", module, PluginOptions{})
	wantError(t, err, "manifest: hooks is empty")
}

func TestOptional(t *testing.T) {
	const optional = `,"optional":["make_coffee","count_beans","clean_up","unheard_of"]`
	engines(t, func(t *testing.T, e *Engine) {
		changes, err := callPlugin(t.Context(), loadModule(t, e, manifested(t, "optional", optional), PluginOptions{}), newEvent())
		if err != nil || len(changes) != 1 || changes[0].Key != "example.com/optional" || changes[0].Text != "yes" {
			t.Errorf("got %+v, %v", changes, err)
		}
		_, err = e.Load(t.Context(), "p", manifested(t, "optional", `,"optional":["make_coffee","clean_up"]`), PluginOptions{})
		wantError(t, err, "it imports wp1.count_beans () -> i64, which this host does not have")
		_, err = e.Load(t.Context(), "p", manifested(t, "wrong-signature", `,"optional":["get"]`), PluginOptions{})
		wantError(t, err, "it imports wp1.get as (i32, i32, i32) -> i32, but it is")
	})
	in, err := Inspect(t.Context(), manifested(t, "optional", optional), PluginOptions{})
	if err != nil || len(in.Problems) > 0 || in.Imports[0].State != Served || in.Imports[1].State != Absent || in.Imports[3].State != Absent {
		t.Errorf("inspected: %+v, %v", in, err)
	}
}

// TestKeptInstance shows that a plugin with state "instance" remembers, one call at
// a time, until it traps; and that the operator has the last word.
func TestKeptInstance(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		kept := manifested(t, "fickle", `,"state":"instance"`)
		p := loadModule(t, e, kept, PluginOptions{})
		for _, step := range []struct{ do, want string }{
			{"", "1"}, {"", "2"}, {"fail", "failed: asked to"}, {"", "3"}, {"trap", "trapped: unreachable"},
			{"", "1"}, {"exit", "exited with code 1"}, {"", "1"}, {"", "2"},
		} {
			changes, err := callPlugin(t.Context(), p, asking(step.do))
			if step.do != "" {
				wantError(t, err, step.want)
			} else if err != nil || len(changes) != 1 || changes[0].Text != step.want {
				t.Errorf("got %v, %v, want the count %s", changes, err, step.want)
			}
		}
		p = loadModule(t, e, kept, PluginOptions{State: abi.StateNone})
		for range 2 {
			if changes, err := callPlugin(t.Context(), p, asking("")); err != nil || changes[0].Text != "1" {
				t.Errorf("the operator wants no state: %v, %v", changes, err)
			}
		}
	})
}

// TestKeptInstanceIsOne calls one from many sides: no count is lost, or seen twice.
func TestKeptInstanceIsOne(t *testing.T) {
	p := loadModule(t, newEngine(t, Options{}), manifested(t, "fickle", `,"state":"instance"`), PluginOptions{Timeout: time.Minute})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 4 {
		wg.Go(func() {
			for range 25 {
				changes, err := callPlugin(t.Context(), p, asking(""))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[changes[0].Text]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for digit := range 10 {
		if n := seen[fmt.Sprint(digit)]; n != 10 {
			t.Errorf("%d calls were told a count that ends with %d, want 10", n, digit)
		}
	}
}

// TestKVCounts shows when what a guest keeps on the host takes effect: when its
// hook returns 0, and over a reload.
func TestKVCounts(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		kv := plugin.NewKV()
		p := load(t, e, "kept", PluginOptions{KV: kv})
		for _, step := range []struct{ do, want string }{
			{"", "1"}, {"", "2"}, {"trap", "trapped: unreachable"}, {"fail", "failed: asked to"}, {"deny", "rejected: asked to"}, {"", "3"},
		} {
			changes, err := callPlugin(t.Context(), p, asking(step.do))
			if step.do != "" {
				wantError(t, err, step.want)
			} else if err != nil || len(changes) != 1 || changes[0].Text != step.want {
				t.Errorf("got %v, %v, want the count %s", changes, err, step.want)
			}
		}
		again := load(t, e, "kept", PluginOptions{KV: kv})
		if changes, err := callPlugin(t.Context(), again, asking("")); err != nil || changes[0].Text != "4" {
			t.Errorf("after a reload: %v, %v", changes, err)
		}
		denied := load(t, e, "kept", PluginOptions{KV: kv, Granted: abi.DefaultGrant()})
		if _, err := callPlugin(t.Context(), denied, asking("")); !errors.Is(err, abi.Denied) {
			t.Errorf("without a grant: %v", err)
		}
	})
}

// stoppedTick is a Tick that a limit stops after the plugin was done with some pods, or at its first.
type stoppedTick struct {
	*testEvent
	further bool
}

func (t stoppedTick) Stop() (func(abi.Object) bool, bool) { return nil, t.further }

// TestKVOfAStoppedTick: what it keeps on the host counts if what it has set does.
func TestKVOfAStoppedTick(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		for further, want := range map[bool]int{false: 0, true: 1} {
			kv, ev := plugin.NewKV(), newEvent()
			ev.hook = abi.Tick
			p := load(t, e, "kept", PluginOptions{KV: kv, Set: abi.Limits{TickHostCalls: 2}}) // the second writes
			_, err := callPlugin(t.Context(), p, stoppedTick{ev, further})
			wantError(t, err, "called the host more than 2 times")
			if n := len(kv.All()); n != want {
				t.Errorf("further %v: %d values are kept, want %d", further, n, want)
			}
		}
	})
}

// TestLimits has a manifest that asks for less than the default or the operator's limit, and for
// more than the default.
func TestLimits(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		above := DefaultFuel + DefaultFuel/20
		if e.interpret {
			above = InterpretedFuel + InterpretedFuel/20
		}
		for _, tt := range []struct {
			guest, limits, want string
			o                   PluginOptions
		}{
			{"loop", `"fuel":500000`, "units of fuel, its limit is 500000", PluginOptions{Timeout: time.Minute}},
			{"loop", `"fuel":500000`, "units of fuel, its limit is 500000", PluginOptions{Set: abi.Limits{Fuel: 600_000}, Timeout: time.Minute}},
			{"loop", fmt.Sprintf(`"fuel":%d`, above), fmt.Sprintf("units of fuel, its limit is %d", above),
				PluginOptions{Timeout: time.Minute, Max: abi.Limits{Fuel: int64(above)}}},
			{"loop", `"time_ms":30`, "ran longer than its time limit of 30ms", PluginOptions{Set: abi.Limits{Fuel: 1 << 60}}},
			{"loop", `"time_ms":600`, "ran longer than its time limit of 600ms", PluginOptions{Set: abi.Limits{Fuel: 1 << 60}, Max: abi.Limits{TimeMS: 700}}},
			{"host-call-flood", `"host_calls":7`, "called the host more than 7 times: raise limits.host_calls in its manifest", PluginOptions{}},
			{"host-call-flood", `"host_calls":7`, "called the host more than 7 times", PluginOptions{Set: abi.Limits{HostCalls: 9}}},
			{"host-call-flood", `"host_calls":3000`, "called the host more than 3000 times", PluginOptions{Max: abi.Limits{HostCalls: 3000}}},
		} {
			p := loadModule(t, e, manifested(t, tt.guest, `,"limits":{`+tt.limits+`}`), tt.o)
			_, err := callPlugin(t.Context(), p, newEvent())
			wantError(t, err, tt.want)
		}
	})
}

// TestTickCallsOfManifest has manifests and options that name the host calls of Tick, and such
// that name those of every hook.
func TestTickCallsOfManifest(t *testing.T) {
	e := newEngine(t, Options{})
	for _, tt := range []struct {
		limits, want string
		o            PluginOptions
	}{
		{`"host_calls":30`, "called the host more than 30 times: raise limits.tick_host_calls in its manifest", PluginOptions{}},
		{`"host_calls":30,"tick_host_calls":40`, "called the host more than 40 times: raise limits.tick_host_calls in its manifest", PluginOptions{}},
		{`"tick_host_calls":25000`, "called the host more than 25000 times", PluginOptions{Max: abi.Limits{TickHostCalls: 30_000}}},
		{`"fuel":100000`, "called the host more than 50 times: raise limits.tick-host-calls", PluginOptions{Set: abi.Limits{HostCalls: 40, TickHostCalls: 50}}},
		{`"host_calls":45`, "called the host more than 40 times", PluginOptions{Set: abi.Limits{HostCalls: 50, TickHostCalls: 40}}},
	} {
		ev := newEvent()
		ev.hook = abi.Tick
		tt.o.Set.Fuel = 20_000_000 // for 25,000 calls
		_, err := callPlugin(t.Context(), loadModule(t, e, manifested(t, "host-call-flood", `,"limits":{`+tt.limits+`}`), tt.o), ev)
		wantError(t, err, tt.want)
	}
}

// TestManifestAboveTheMaximum refuses a plugin that asks for more than its operator allows, and
// names the manifest's field, its value, the maximum, and the key that raises it.
func TestManifestAboveTheMaximum(t *testing.T) {
	e := newEngine(t, Options{})
	most := abi.Limits{Fuel: 50_000_000, Memory: 64 << 20, TimeMS: 1000, HostCalls: 5000, TickHostCalls: 5000}
	for _, tt := range []struct {
		limits, want string
		o            PluginOptions
	}{
		{`"fuel":50000001`, "limits.fuel is 50000001, above the maximum of 50000000: raise the setting max-plugin-fuel, or set limits.fuel in the plugin's JSON", PluginOptions{Max: most}},
		{`"memory":67108865`, "limits.memory is 67108865, above the maximum of 67108864: raise the setting max-plugin-memory, or set limits.memory in", PluginOptions{Max: most}},
		{`"time_ms":1001`, "limits.time_ms is 1001, above the maximum of 1000: raise the setting max-plugin-timeout, or set timeout in", PluginOptions{Max: most}},
		{`"host_calls":5001`, "limits.host_calls is 5001, above the maximum of 5000: raise the setting max-plugin-host-calls, or set limits.host-calls in", PluginOptions{Max: most}},
		{`"tick_host_calls":20001`, "limits.tick_host_calls is 20001, above the maximum of 20000: raise the setting max-plugin-host-calls", PluginOptions{Max: most}}, // the default is more
		{fmt.Sprintf(`"fuel":%d`, DefaultFuel+1), fmt.Sprintf("limits.fuel is %d, above the maximum of %d", DefaultFuel+1, DefaultFuel), PluginOptions{}},
		{`"fuel":700000`, "limits.fuel is 700000, above the maximum of 600000: raise limits.fuel in the plugin's JSON", PluginOptions{Set: abi.Limits{Fuel: 600_000}, Max: most}},
		{`"host_calls":10,"tick_host_calls":11`, "limits.tick_host_calls is 11, above the maximum of 10: raise limits.tick-host-calls in", PluginOptions{Set: abi.Limits{HostCalls: 10}, Max: most}},
		{`"time_ms":60001`, "limits.time_ms is 60001, above the maximum of 60000: no setting allows more", PluginOptions{Max: most}},
	} {
		module := manifested(t, "quota", `,"limits":{`+tt.limits+`}`)
		_, err := e.Load(t.Context(), "p", module, tt.o)
		wantError(t, err, "manifest: "+tt.want)
		in, err := Inspect(t.Context(), module, tt.o)
		if err != nil || len(in.Problems) != 1 || !strings.Contains(in.Problems[0], tt.want) {
			t.Errorf("%s: inspected: %q, %v", tt.limits, in.Problems, err)
		}
	}
}

// TestMemoryLimitOfManifest has one in a custom section and one in an export.
func TestMemoryLimitOfManifest(t *testing.T) {
	e := newEngine(t, Options{})
	p := loadModule(t, e, manifested(t, "alloc", `,"limits":{"memory":200000}`), PluginOptions{})
	if p.limit != 4 {
		t.Errorf("it may have %d pages", p.limit)
	}
	_, err := callPlugin(t.Context(), p, newEvent())
	wantError(t, err, "unreachable in out_of_memory")
	_, err = e.Load(t.Context(), "p", manifested(t, "memory-hungry", `,"limits":{"memory":65536}`), PluginOptions{})
	wantError(t, err, "it needs 1000 pages (62.5 MiB) of memory to start with, its limit is 1 (0.0625 MiB)")

	exported := bytes.Replace(wat(t, "alloc"), []byte(`["PreRunPodSandbox","PreCreateContainer","PostStopContainer"]`), []byte(`["PreCreateContainer"],          "limits":{"memory":50331648}`), 1)
	for _, raised := range [][]byte{manifested(t, "alloc", `,"limits":{"memory":50331648}`), exported} {
		p = loadModule(t, e, raised, PluginOptions{Set: abi.Limits{Fuel: 20_000_000}, Max: abi.Limits{Memory: 64 << 20}})
		_, err = callPlugin(t.Context(), p, newEvent())
		wantError(t, err, "its memory has 48 MiB, its limit is 48 MiB: raise limits.memory in its manifest")
		_, err = e.Load(t.Context(), "p", raised, PluginOptions{})
		wantError(t, err, "limits.memory is 50331648, above the maximum of 33554432")
	}
	_, err = e.Load(t.Context(), "p", wat(t, "memory-hungry"), PluginOptions{Max: abi.Limits{Memory: 64 << 20}})
	wantError(t, err, "it needs 1000 pages (62.5 MiB) of memory to start with, its limit is 512 (32 MiB): raise limits.memory")

	m, err := newMemory(&memoryBudget{limit: 1 << 20}, 2<<16, 8<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	wantError(t, m.cap(1<<16), "it needs 2 pages (0.125 MiB) of memory to start with, its limit is 1 (0.0625 MiB)")
	if err := m.cap(3 << 16); err != nil || m.Reallocate(3<<16) == nil || m.Reallocate(4<<16) != nil {
		t.Errorf("a lower limit does not hold: %v", err)
	}
}

// TestManifestOfRefusedConfig shows that a plugin whose config is refused is still known by its
// manifest: calls are refused in the hooks that it names.
func TestManifestOfRefusedConfig(t *testing.T) {
	o := PluginOptions{Config: []byte(`{"lable":1}`)}
	m := abi.Manifest{Name: "guard", Hooks: make([]abi.ManifestHook, 1), ConfigSchema: `{"additionalProperties":false}`}
	if got, err := o.negotiate(&m); err == nil || got.manifest.Name != "guard" || len(got.manifest.Hooks) != 1 {
		t.Errorf("got the manifest %+v with %v, want the hooks and an error", got.manifest, err)
	}
}
