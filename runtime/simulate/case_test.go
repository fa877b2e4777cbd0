package simulate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// speaker is what a plugin does in PreCreateContainer with what it was loaded with.
type speaker func(o LoadOptions, ev plugin.Event, adj *plugin.Adjustment) error

// runCase parses a case and takes it to a plugin, which wants PreCreateContainer.
func runCase(t *testing.T, text string, speak speaker) (fixture.Case, fixture.Answer, error) {
	t.Helper()
	cases, err := fixture.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := RunCase(t.Context(), cases[0], func(o LoadOptions) (plugin.Plugin, error) {
		return function{abi.PreCreateContainer, func(ev plugin.Event, adj *plugin.Adjustment) error { return speak(o, ev, adj) }}, nil
	})
	return cases[0], answer, err
}

func (o LoadOptions) say(text string) {
	o.Observer.Observe(context.Background(), &observe.PluginLog{Level: observe.Info, Text: text})
}

// whole is a case of which everything is compared.
const whole = `{
	"hook": "PreCreateContainer", "pod": {"qos": "Burstable"}, "container": {"name": "web"}, "grant": ["*"], "cgroup": "v2", "config": {"a": [1, 2]}, "kv": {"k": "v"},
	"want": {
		"changes": {"container.resources.cpu_quota": 5000, "container.env[\"A\"]": null, "container.args": ["a", "b"],
			"container.cdi_devices[\"v.com/c=n\"]": true, "container.devices[\"/d\"]": {"permissions": "r", "host_path": "/h", "container_path": "/d"}},
		"log": ["info: {\"a\":[1,2]}"], "kv": {"k": "v"}, "metrics": {"m": 3}
	}
}`

// right is the plugin that answers it.
func right(o LoadOptions, _ plugin.Event, adj *plugin.Adjustment) error {
	o.say(o.Config)
	o.Metrics.Update(abi.MetricAdd, "m", 3)
	info, _ := abi.FieldOf(abi.Container, abi.ContainerDevices)
	device := abi.AppendRecord(nil, info.RecordKeys(), func(k string) string {
		return map[string]string{"container_path": "/d", "host_path": "/h", "permissions": "r"}[k]
	})
	return errors.Join(
		adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 5000),
		adj.DeleteEntry(abi.Container, abi.ContainerEnv, "A"),
		adj.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"a", "b"}))}),
		adj.AddElement(abi.Container, abi.ContainerCDIDevices, "v.com/c=n"),
		adj.AddElement(abi.Container, abi.ContainerDevices, string(device)),
	)
}

// TestCompare alters one thing of an answer at a time: each is found.
func TestCompare(t *testing.T) {
	compare := func(speak speaker) error {
		c, answer, err := runCase(t, whole, speak)
		return errors.Join(err, c.Want.Compare(answer))
	}
	if err := compare(right); err != nil {
		t.Errorf("the right answer: %v", err)
	}
	for want, more := range map[string]speaker{
		`container.env["B"] is set to x, want no change`: func(_ LoadOptions, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetEntry(abi.Container, abi.ContainerEnv, "B", "x")
		},
		`cpu_quota is set to 6000, want 5000`: func(_ LoadOptions, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 6000)
		},
		`failed: no`:   func(LoadOptions, plugin.Event, *plugin.Adjustment) error { return errors.New("no") },
		`code 8: full`: func(_ LoadOptions, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(8, "full") },
		`"info: more"`: func(o LoadOptions, _ plugin.Event, _ *plugin.Adjustment) error { o.say("more"); return nil },
		`metrics are map[m:3 n:1]`: func(o LoadOptions, _ plugin.Event, _ *plugin.Adjustment) error {
			o.Metrics.Update(abi.MetricAdd, "n", 1)
			return nil
		},
		`metrics are map[(dropped):1 m:3]`: func(o LoadOptions, _ plugin.Event, _ *plugin.Adjustment) error {
			o.Metrics.Update(abi.MetricSet, "m", 1)
			return nil
		},
		`kv holds map["k":"other"]`: func(o LoadOptions, _ plugin.Event, _ *plugin.Adjustment) error {
			txn := o.KV.Begin()
			txn.Set("k", "other")
			return txn.Commit()
		},
	} {
		err := compare(func(o LoadOptions, ev plugin.Event, adj *plugin.Adjustment) error {
			return errors.Join(right(o, ev, adj), more(o, ev, adj))
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestEarlier has a plugin before the one of the case: other values are a conflict, the
// same ones are not.
func TestEarlier(t *testing.T) {
	const before = `{"hook": "PreCreateContainer", "pod": {}, "container": {}, "cgroup": "v2", "grant": ["*"],
		"earlier": {"container.resources.cpu_shares": 2, "container.annotations[\"a\"]": "b", "container.args": ["x"],
			"container.cdi_devices[\"v.com/c=n\"]": true, "container cgroup file cpu.idle": "1"}}`
	_, answer, err := runCase(t, before, func(_ LoadOptions, ev plugin.Event, adj *plugin.Adjustment) error {
		if args, _ := ev.List(context.Background(), abi.Container, abi.ContainerArgs); !slices.Equal(args, []string{"x"}) {
			t.Errorf("the plugin finds args %q", args)
		}
		return errors.Join(
			adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 2),
			adj.SetEntry(abi.Container, abi.ContainerAnnotations, "a", "c"),
			adj.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"y"}))}),
			adj.DeleteElement(abi.Container, abi.ContainerCDIDevices, "v.com/c=n"),
			adj.WriteFile(abi.Container, "cpu.idle", "0"),
		)
	})
	if err != nil || answer.Err == nil || strings.Count(answer.Err.Error(), "conflict") < 4 || strings.Contains(answer.Err.Error(), "cpu_shares") {
		t.Errorf("%v, error %v", answer, err)
	}
	for target, want := range map[string]string{
		`"node.cpus": 1`:                            `earlier: node.cpus: "node" is no object of an event`,
		`"container.colour": "red"`:                 "no such field",
		`"container.annotations": "x"`:              "no such field",
		`"container.image[\"k\"]": "x"`:             "no such field",
		`"container.annotations[k]": "x"`:           "not a key",
		`"container.run_as_user": "root"`:           "invalid syntax",
		`"pod.labels[\"a\"]": "b"`:                  "read-only",
		`"container.resources.oom_score_adj": 5000`: "5000: want -1000 to 1000",
	} {
		_, _, err := runCase(t, `{"hook": "PreCreateContainer", "earlier": {`+target+`}}`, right)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
}

// TestCaseOnTheNode has what a case does not say as a node has it.
func TestCaseOnTheNode(t *testing.T) {
	for text, check := range map[string]func(plugin.Event) (got, want any){
		`{"hook": "PreCreateContainer", "time": 7}`: func(ev plugin.Event) (any, any) { return ev.Time().UnixNano(), int64(7) },
		`{"hook": "PreCreateContainer", "container": {"id": "c"}}`: func(ev plugin.Event) (any, any) {
			id, _ := ev.Text(abi.Container, abi.ContainerID)
			return id, "" // it is not made yet
		},
		`{"hook": "PreCreateContainer", "cgroup_files": {"pod": {"cpu.stat": "x"}}}`: func(ev plugin.Event) (any, any) {
			v, _ := plugin.ReadFile(t.Context(), ev, abi.Pod, "cpu.stat")
			return v, "x"
		},
		`{"hook": "PreCreateContainer", "cgroup": "v1", "cgroup_files": {"pod": {"cpu.stat": "x"}}}`: func(ev plugin.Event) (any, any) {
			v, _ := plugin.ReadFile(t.Context(), ev, abi.Pod, "cpu.stat")
			return v, "x"
		},
		`{"hook": "PreCreateContainer", "node": {"cgroup_version": 1}, "cgroup_files": {"pod": {"cpu.stat": "x", "io.stat": "y"}}}`: func(ev plugin.Event) (any, any) {
			_, errno := plugin.ReadFile(t.Context(), ev, abi.Pod, "io.stat")
			return errno, abi.Unsupported // v1 has none
		},
		`{"hook": "PreCreateContainer", "pod": {"qos": "BestEffort"}, "cgroup_files": {"BestEffort": {"memory.min": "7"}, "pod": {"memory.min": "8"}}}`: func(ev plugin.Event) (any, any) {
			v, _ := plugin.ReadFile(t.Context(), ev, abi.QOSClass+abi.Pod, "memory.min")
			return v, "7"
		},
		`{"hook": "PreCreateContainer", "cgroup": "v1", "pod": {"qos": "Guaranteed"}, "cgroup_files": {"Guaranteed": {"cpu.stat": "x"}, "pod": {"cpu.stat": "y"}}}`: func(ev plugin.Event) (any, any) {
			v, _ := plugin.ReadFile(t.Context(), ev, abi.QOSClass+abi.Pod, "cpu.stat")
			own, _ := plugin.ReadFile(t.Context(), ev, abi.Pod, "cpu.stat")
			return v + own, "xy"
		},
		`{"hook": "PreCreateContainer", "cgroup": "v2", "pod": {"qos": "Burstable"}}`: func(ev plugin.Event) (any, any) {
			v, _ := plugin.ReadFile(t.Context(), ev, abi.QOSClass+abi.Pod, "memory.max")
			return v, "max"
		},
		`{"hook": "PreCreateContainer", "cgroup": "v2"}`: func(ev plugin.Event) (any, any) {
			_, errno := plugin.ReadFile(t.Context(), ev, abi.QOSClass+abi.Pod, "memory.max")
			return errno, abi.NotFound
		},
		`{"hook": "PreCreateContainer", "siblings": [{"id": "s"}], "cgroup_files": {"s": null}}`: func(ev plugin.Event) (any, any) {
			h, _ := ev.Find(abi.ByContainerID, "s", nil)
			_, errno := plugin.ReadFile(t.Context(), ev, h, "cpu.max")
			return errno, abi.NotFound
		},
		`{"hook": "PreCreateContainer", "siblings": [{"id": "s"}], "cgroup": "v2"}`: func(ev plugin.Event) (any, any) {
			h, _ := ev.Find(abi.ByContainerID, "s", nil)
			v, _ := plugin.ReadFile(t.Context(), ev, h, "cpu.max")
			return v, "max 100000"
		},
		`{"hook": "PreCreateContainer", "pod": {"qos": ""}}`: func(ev plugin.Event) (any, any) {
			qos, _ := ev.Text(abi.Pod, abi.PodQoS)
			return qos, ""
		},
		`{"hook": "PreCreateContainer", "container": {"run_as_user": 0, "run_as_username": "root"}}`: func(ev plugin.Event) (any, any) {
			user, errno := ev.Int64(abi.Container, abi.ContainerRunAsUser)
			return [2]any{user, errno}, [2]any{int64(0), abi.OK}
		},
	} {
		_, answer, err := runCase(t, text, func(_ LoadOptions, ev plugin.Event, _ *plugin.Adjustment) error {
			if got, want := check(ev); got != want {
				t.Errorf("%s: got %v, want %v", text, got, want)
			}
			return nil
		})
		if err != nil || answer.Err != nil {
			t.Errorf("%s: %v, %v", text, err, answer.Err)
		}
	}
}

// TestEventHasItsFields has fields of the event that no call of the hook has, and states that no call brings about: they are not
// ignored.
func TestEventHasItsFields(t *testing.T) {
	for text, want := range map[string]string{
		`"PreCreateContainer", "event": {"image": "x"}`:       "event.image: hook PreCreateContainer has no event with the value x",
		`"PreExec", "event": {"timeout": 3}`:                  "event.timeout: ",
		`"PreExec", "event": {"tty": 7}`:                      "event.tty: ",
		`"PreExec", "event": {"method": "ExecSync"}`:          "event.method: ",
		`"PreExec", "event": {"time": 3}`:                     "event.time: ",
		`"Tick", "event": {"command": []}`:                    "event.command: ",
		`"PreExec", "event": {"method": "Exec", "tty": 1}`:    "",
		`"PostExecSync", "event": {"exit_code": 3}`:           "",
		`"PrePullImage", "event": {"image": "example.com/i"}`: "",

		`"Tick", "store": [{"pod": {}, "containers": [{"state": "unknown"}]}]`: `container.state: "unknown" is none`,
		`"PreExec", "siblings": [{"state": "Exited"}]`:                         `container.state: "Exited"`,
		`"Tick", "store": [{"pod": {"state": "stopped"}}]`:                     `pod.state: "stopped"`,
		`"PreExec", "pod": {"state": "notready"}`:                              "",
	} {
		cases, err := fixture.Parse("", []byte(`{"hook": `+text+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FromFixture(cases[0], 2); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCaseNotCalled has a hook that the plugin does not have, and a pod that its match
// does not select: neither passes for an answer.
func TestCaseNotCalled(t *testing.T) {
	_, answer, err := runCase(t, `{"hook": "Tick"}`, right)
	if err != nil || answer.Err == nil || answer.Err.Error() != "plugin function has no hook Tick; its hooks are PreCreateContainer" {
		t.Errorf("got %v, %v", answer.Err, err)
	}
	cases, err := fixture.Parse("", []byte(`{"hook": "PreCreateContainer", "pod": {"namespace": "test"}}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err = RunCase(t.Context(), cases[0], func(LoadOptions) (plugin.Plugin, error) { return choosy{}, nil })
	if err != nil || answer.Err == nil || !strings.Contains(answer.Err.Error(), "not called: the plugin's match does not select") {
		t.Errorf("got %v, %v", answer.Err, err)
	}
}

// choosy is a plugin for one namespace.
type choosy struct{ function }

func (choosy) Manifest() abi.Manifest {
	return abi.Manifest{Name: "choosy", Hooks: []abi.ManifestHook{{Hook: "PreCreateContainer", Match: abi.Match{Namespaces: []string{"prod"}}}}}
}
