package wasm

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// secret is what no guest without a capability may find.
const secret = "hunter2-hunter2"

// TestEnvIsHidden has a guest without env ask for it in every way there is, and
// looks for a secret in all that then is in its memory.
func TestEnvIsHidden(t *testing.T) {
	for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.AllCapabilities &^ abi.CapabilitySetOf(abi.Env)} {
		ev := newEvent()
		ev.maps[slot{abi.Container, abi.ContainerEnv}]["PASSWORD"] = secret
		ev.maps[slot{abi.FirstHandle, abi.ContainerEnv}] = map[string]string{"PASSWORD": secret}
		c := newCaller(t, ev, PluginOptions{Granted: has})
		at := buffer
		for _, o := range []abi.Object{abi.Container, abi.FirstHandle} {
			for _, ask := range [][]any{
				{"map_dump", o, abi.ContainerEnv}, {"map_get", o, abi.ContainerEnv, "PASSWORD"},
				{"get", o, abi.ContainerEnv}, {"list_dump", o, abi.ContainerEnv},
			} {
				got, err := c.try(ask[0].(string), append(slices.Clone(ask[1:]), at, 0x800)...)
				if at += 0x800; err != nil || !has.Has(abi.Env) && got != int64(abi.Denied) {
					t.Errorf("%v: got %d, %v", ask, got, err)
				}
			}
			if !has.Has(abi.Env) {
				c.wantErrno(abi.Denied, "get_i64", o, abi.ContainerEnv, at)
			}
		}
		memory, _ := c.g.instance.Memory().Read(0, c.g.instance.Memory().Size())
		if found := strings.Contains(string(memory), secret); found != has.Has(abi.Env) {
			t.Errorf("with env %v: the secret is in the guest's memory: %v", has.Has(abi.Env), found)
		}
	}
}

// TestDenied takes away one capability at a time, and calls each function of the
// table that needs it with arguments that would trap.
func TestDenied(t *testing.T) {
	for _, row := range abi.Functions {
		if row.Needs == 0 {
			continue
		}
		c := newCaller(t, newEvent(), PluginOptions{Granted: abi.AllCapabilities &^ abi.CapabilitySetOf(row.Needs)})
		c.wantErrno(abi.Denied, row.Name, badArguments(row)...)
		c = newCaller(t, newEvent(), PluginOptions{Granted: abi.CapabilitySetOf(row.Needs)})
		c.wantTrap(row.Name+": ", row.Name, badArguments(row)...)
	}
}

// badArguments are -1, which is no pointer and no length.
func badArguments(row abi.Function) []any {
	args := make([]any, len(row.Params))
	for i := range args {
		args[i] = -1
	}
	return args
}

func TestKV(t *testing.T) {
	kv := plugin.NewKV()
	c := newCaller(t, newEvent(), PluginOptions{KV: kv})
	c.want(0, "kv_set", "a", "1")
	c.want(0, "kv_set", "b", "")
	c.wantText("1", "kv_get", "a")
	c.wantText("", "kv_get", "b")
	c.want(0, "kv_del", "a")
	c.want(0, "kv_del", "a")
	c.wantErrno(abi.NotFound, "kv_get", "a", 0, 0)
	c.wantErrno(abi.Invalid, "kv_set", "", "v")
	c.wantErrno(abi.TooLarge, "kv_set", strings.Repeat("k", plugin.MaxKVKey+1), "v")
	if _, errno := kv.Begin().Get("b"); errno != abi.NotFound {
		t.Errorf("others see what the call has not ended with: %v", errno)
	}
}

func TestMetric(t *testing.T) {
	metrics := plugin.NewMetrics()
	c := newCaller(t, newEvent(), PluginOptions{Metrics: metrics})
	c.want(0, "metric", abi.MetricAdd, "seen_total", int64(2))
	c.want(0, "metric", abi.MetricAdd, "seen_total", int64(3))
	c.wantErrno(abi.Invalid, "metric", abi.MetricAdd, "seen_total", int64(-1))
	c.wantErrno(abi.Invalid, "metric", 7, "seen_total", int64(1))
	c.wantErrno(abi.TooLarge, "metric", abi.MetricAdd, strings.Repeat("a", 129), int64(1))
	if all := metrics.All(); len(all) != 1 || all[0].Value != 5 {
		t.Errorf("got %+v", all)
	}
}

// TestRandom wants the same numbers for the same event and others for any other.
func TestRandom(t *testing.T) {
	numbers := func(ev *testEvent) string {
		c := newCaller(t, ev, PluginOptions{})
		c.want(0, "random", buffer, 16)
		c.want(0, "random", buffer+16, maxNumbers)
		c.want(0, "random", 0, 0)
		c.wantErrno(abi.TooLarge, "random", buffer, maxNumbers+1)
		b, _ := c.g.instance.Memory().Read(buffer, 32)
		return string(b)
	}
	first := numbers(newEvent())
	if first[:16] == first[16:] || first != numbers(newEvent()) {
		t.Errorf("got %q, want the same for the same event", first)
	}
	for name, change := range map[string]func(*testEvent){
		"container": func(ev *testEvent) { ev.texts[slot{abi.Container, abi.ContainerName}] = "sidecar" },
		"pod":       func(ev *testEvent) { ev.texts[slot{abi.Pod, abi.PodUID}] = "u2" },
		"hook":      func(ev *testEvent) { ev.hook = abi.PreStartContainer },
		"time":      func(ev *testEvent) { ev.at = ev.at.Add(1) },
	} {
		ev := newEvent()
		change(ev)
		if numbers(ev) == first {
			t.Errorf("another %s has the same numbers", name)
		}
	}
}

func TestFeatureAndLogLevel(t *testing.T) {
	for level, want := range map[slog.Level]int64{slog.LevelDebug: 0, slog.LevelInfo: 1, slog.LevelWarn: 2, slog.LevelError: 3, slog.LevelError + 1: 4} {
		log := slogsink.New(slog.New(slog.NewTextHandler(new(record), &slog.HandlerOptions{Level: level})))
		c := newCaller(t, newEvent(), PluginOptions{Observer: log, Features: []abi.Feature{abi.FeatureKV}})
		c.want(want, "log_level")
		c.want(1, "feature", abi.FeatureKV)
		c.want(0, "feature", abi.FeatureUpdate)
		c.want(0, "feature", -1)
		c.want(0, "feature", 99)
	}
}

// TestFuelOfHostFunctions shows that what the host finds for a guest is paid for,
// also if the guest has no room for it.
func TestFuelOfHostFunctions(t *testing.T) {
	ev := newEvent()
	ev.texts[slot{abi.Pod, abi.PodHostname}] = strings.Repeat("x", 16_000)
	c := newCaller(t, ev, PluginOptions{})
	c.c.meter.begin()
	for _, room := range []int{0, 16_000} {
		before := c.c.meter.used()
		c.want(16_000, "get", abi.Pod, abi.PodHostname, buffer, room)
		if used := c.c.meter.used() - before; used < 1100 || used > 1200 {
			t.Errorf("with room for %d: %d units of fuel, want 1,100 and a few instructions", room, used)
		}
	}
}

// TestBoundsOfGuests: what is outside of the operator's match is neither listed nor found, and a handle of it that an
// earlier plugin of the event got reads nothing and changes nothing. With store.read.all it reads.
func TestBoundsOfGuests(t *testing.T) {
	const first = abi.FirstHandle
	for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.AllCapabilities &^ abi.CapabilitySetOf(abi.StoreReadAll)} {
		ev := newEvent()
		ev.outside = []abi.Object{first, first + 1}
		ev.maps[slot{first, abi.ContainerAnnotations}] = map[string]string{"a": "b"}
		ev.lists[slot{first, abi.ContainerArgs}] = []string{"x"}
		c, all := newCaller(t, ev, PluginOptions{Granted: has}), has.Has(abi.StoreReadAll)
		c.c.adj = (&plugin.Member{Capabilities: has, Bounds: plugin.BoundsOf(abi.Match{Namespaces: []string{"test"}})}).NewAdjustment(ev, 2)
		for _, ask := range [][]any{
			{"get", first, abi.ContainerName, buffer, 0x800}, {"get_i64", first, abi.Resources + abi.CPUQuota, buffer},
			{"map_get", first, abi.ContainerAnnotations, "a", buffer, 0x800}, {"map_dump", first, abi.ContainerAnnotations, buffer, 0x800},
			{"list_dump", first, abi.ContainerArgs, buffer, 0x800}, {"cgroup_get", first, "cpu.weight", buffer, 0x800},
			{"cgroup_get", abi.QOSClass + first + 1, "cpu.weight", buffer, 0x800}, {"container_list", first + 1, buffer, 0x800},
			{"pod_find", abi.ByPodName, "prod/web-1"},
		} {
			if got, err := c.try(ask[0].(string), ask[1:]...); err != nil || (got == int64(abi.NotFound)) == all {
				t.Errorf("with store.read.all %v: %v: got %d, %v", all, ask, got, err)
			}
		}
		lists, file := []string{"", "\x13\x00\x00\x00", "\x12\x00\x00\x00"}, abi.AppendText(abi.AppendText(nil, "-1"), "")
		if all {
			lists = []string{"\x11\x00\x00\x00", "\x11\x00\x00\x00\x13\x00\x00\x00", "\x10\x00\x00\x00\x12\x00\x00\x00"}
			file = abi.AppendText(abi.AppendText(nil, ""), "100")
		}
		c.wantText(lists[0], "pod_list", "prod")
		c.wantText(lists[1], "pod_list", "")
		c.wantText(lists[2], "container_list", abi.Pod)
		c.wantText("\x01\x00\x00\x00"+string(file), "cgroup_read", "\x10\x00\x00\x00", string(abi.AppendList(nil, []string{"cpu.weight"})))
		c.wantErrno(abi.Denied, "set_i64", first, abi.Resources+abi.CPUQuota, int64(50_000))
		c.wantErrno(abi.Denied, "cgroup_set", first+1, "memory.high", "8192000")
		c.want(0, "set_i64", abi.Container, abi.Resources+abi.CPUShares, int64(100))
	}
}

// TestHandlesOfOthers: a handle that an earlier plugin of the event looked up is none to a
// guest that may not look anything up, though numbers are easy to guess.
func TestHandlesOfOthers(t *testing.T) {
	for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.AllCapabilities &^ abi.CapabilitySetOf(abi.StoreRead)} {
		c, o := newCaller(t, newEvent(), PluginOptions{Granted: has}), abi.FirstHandle
		for _, ask := range [][]any{
			{"get", o, abi.ContainerName, buffer, 0x800}, {"get_i64", o, abi.Resources + abi.CPUQuota, buffer},
			{"set_i64", o, abi.Resources + abi.CPUShares, 100}, {"cgroup_get", o, "cpu.weight", buffer, 0x800},
			{"cgroup_get", abi.QOSClass + abi.FirstHandle + 1, "cpu.weight", buffer, 0x800},
		} {
			got, err := c.try(ask[0].(string), ask[1:]...)
			if err != nil || (got == int64(abi.NotFound)) == has.Has(abi.StoreRead) {
				t.Errorf("with store.read %v: %v: got %d, %v", has.Has(abi.StoreRead), ask, got, err)
			}
		}
		c.wantText("100", "cgroup_get", abi.QOSClass+abi.Pod, "cpu.weight") // of its own pod
	}
}
