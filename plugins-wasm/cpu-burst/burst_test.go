package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
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

// TestNative plays to the source what the tests of the folder above play to the committed plugin.
func TestNative(t *testing.T) { sdktest.Run(t, "testdata/cpu-burst.json") }

// TestWholeNumbersAreKoordletsFloats compares the steps of a quota and its ceiling with koordlet's, in floating point.
func TestWholeNumbersAreKoordletsFloats(t *testing.T) {
	steps := [...]float64{up: 1.2, down: 0.8}
	for quota := int64(1_000); quota < 1<<34; quota += quota/97 + 1 {
		for _, o := range []operation{up, down} {
			c := container{limit: 1, strategy: strategy{quotaPercent: 1 << 50}}
			if got, want := c.target(quota, o), int64(float64(quota)*steps[o]); got != want {
				t.Fatalf("operation %d makes %d of %d, want %d", o, got, quota, want)
			}
		}
		for _, percent := range []int64{100, 101, 150, 300, 9_999} {
			c := container{limit: quota, strategy: strategy{quotaPercent: percent}}
			if got, want := c.target(1<<50, remain), int64(float64(quota)*float64(percent)/100); got != want {
				t.Fatalf("%d %% of %d are %d, want %d", percent, quota, got, want)
			}
		}
	}
}

// TestConfigurations wants an error with the key for each wrong value.
func TestConfigurations(t *testing.T) {
	for config, want := range map[string]string{
		`{"policy": "on"}`: "config: policy", `{"cpuBurstPercent": 10001}`: "config: cpuBurstPercent", `{"cfsQuotaBurstPercent": 99}`: "config: cfsQuotaBurstPercent",
		`{"cfsQuotaBurstPeriodSeconds": -2}`: "config: cfsQuotaBurstPeriodSeconds", `{"sharePoolThresholdPercent": 1.5}`: "config: sharePoolThresholdPercent",
		`[]`: "config: byte 0: [] is not an object", ``: "", `{"policy": "none", "cfsQuotaBurstPeriodSeconds": -1}`: "",
	} {
		if err := sdktest.Configure(config); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// TestLiftedLimit has kubelet lift the limit of a container whose quota is raised: the plugin's does not stay.
func TestLiftedLimit(t *testing.T) {
	p := sdktest.Native(t, `{"policy": "auto"}`, nil)
	for second, step := range []struct {
		limit int64
		want  string
	}{{50_000, "500000"}, {-1, "max 0"}, {-1, ""}, {60_000, "600000"}} {
		changes, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: int64(second+1) * 1e9,
			Store: []sdktest.Pod{{Containers: []sdktest.Fields{{"id": "a", "resources.cpu_quota": step.limit}}}},
			CgroupFiles: map[string]map[string]string{
				"node": {"cpu.stat": "usage_usec 1"}, "a": {"cpu.stat": "usage_usec 1", "cpu.max": fmt.Sprint(step.limit, " 100000")},
			},
		}.Call(t, p)
		const file = "container(a) cgroup file "
		if got := strings.TrimSpace(changes[file+"cpu.max"] + " " + changes[file+"cpu.max.burst"]); got != step.want || err != nil {
			t.Errorf("second %d: %q, want %q; error %v", second, got, step.want, err)
		}
	}
}

// TestEndedContainersHaveNoCPUs has a pod with CPUs of its own, whose init container and earlier attempt have ended: what these
// requested is shared. The kernel says so of the first, and its state stays running.
func TestEndedContainersHaveNoCPUs(t *testing.T) {
	p := sdktest.Native(t, `{"policy": "auto"}`, nil)
	for second := range int64(3) {
		changes, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: (second + 1) * 1e9, Node: sdktest.Fields{"cpus": 4},
			Store: []sdktest.Pod{
				{Fields: sdktest.Fields{"id": "own", "labels": map[string]string{qosLabel: "LSR"}}, Containers: []sdktest.Fields{
					{"id": "init", "state": "running", "resources.cpu_shares": 2_048}, {"id": "before", "state": "exited", "resources.cpu_shares": 2_048},
					{"id": "now", "state": "running", "resources.cpu_shares": 2_048},
				}},
				{Containers: []sdktest.Fields{{"id": "a", "resources.cpu_quota": 50_000}}},
			},
			CgroupFiles: map[string]map[string]string{
				"node": {"cpu.stat": fmt.Sprint("usage_usec ", 1+second*100_000)}, "own": {"cpu.stat": "usage_usec 1"}, "now": {"cpu.stat": "usage_usec 1"},
				"a": {"cpu.stat": fmt.Sprintf("usage_usec 1\nnr_periods %d\nnr_throttled %[1]d", second), "cpu.max": "50000 100000"},
			},
		}.Call(t, p)
		want := ""
		if second > 0 {
			want = "60000"
		}
		if got := changes["container(a) cgroup file cpu.max"]; got != want || err != nil {
			t.Errorf("second %d: the quota is %q, want %q; error %v", second, got, want, err)
		}
	}
}

// TestFormerSandbox has the sandbox of a pod take the place of a former one, which has the same cgroup. What the former one had is
// not set to zero there, and what an LSR pod uses counts once: the CPUs that all share are not idle.
func TestFormerSandbox(t *testing.T) {
	p := sdktest.Native(t, `{"policy": "auto"}`, nil)
	pod := func(id, state, container, class string) sdktest.Pod {
		return sdktest.Pod{Fields: sdktest.Fields{"id": id, "state": state, "labels": map[string]string{qosLabel: class}}, Containers: []sdktest.Fields{
			{"id": container, "resources.cpu_quota": 50_000, "resources.cpu_shares": 2_048},
		}}
	}
	for second := range int64(3) {
		stat := fmt.Sprintf("usage_usec %d\nnr_periods %[2]d\nnr_throttled %[2]d", 1+second*2_000_000, second)
		c := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: (second + 1) * 1e9, Node: sdktest.Fields{"cpus": 4},
			CgroupFiles: map[string]map[string]string{
				"node": {"cpu.stat": fmt.Sprint("usage_usec ", 1+second*3_500_000)}, "old-own": {"cpu.stat": stat}, "own": {"cpu.stat": stat}, "o": {"cpu.stat": stat},
			},
			Store: []sdktest.Pod{pod("old-own", "notready", "x", "LSR"), pod("own", "ready", "o", "LSR"), pod("old", "ready", "a", "LS")},
		}
		ended, running := "a", "b"
		if second == 0 {
			ended, running = "b", "a"
		} else {
			c.Store = append(c.Store[:2], pod("old", "notready", ended, "LS"), pod("new", "ready", running, "LS"))
		}
		c.CgroupFiles[running] = map[string]string{"cpu.stat": stat, "cpu.max": "50000 100000"}
		changes, err := c.Call(t, p)
		if _, zero := changes["pod(old) cgroup file cpu.max.burst"]; zero && second > 0 || err != nil {
			t.Errorf("second %d: the former sandbox has %v; error %v", second, changes, err)
		}
		if quota, raised := changes["container(b) cgroup file cpu.max"]; raised {
			t.Errorf("second %d: the quota is raised to %s", second, quota)
		}
	}
}

// TestOldContainersKeepTheirQuota has a container of which the runtime reports no resources. What the plugin reads is the kernel's
// quota, which was raised before the proxy was restarted.
func TestOldContainersKeepTheirQuota(t *testing.T) {
	p := sdktest.Native(t, `{"policy": "auto"}`, nil)
	for second := range int64(3) {
		changes, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v1", Time: (second + 1) * 1e9,
			Store: []sdktest.Pod{{Containers: []sdktest.Fields{
				{"id": "a", "resources.cpu_quota": 150_000, "resources.cpu_period": 100_000, "resources.oom_score_adj": abi.Unsupported},
			}}},
			CgroupFiles: map[string]map[string]string{
				"node": {"cpu.stat": fmt.Sprint("usage_usec ", 1+second)},
				"a":    {"cpu.stat": fmt.Sprintf("usage_usec 1\nnr_periods %d\nnr_throttled %[1]d", second), "cpu.max": "150000 100000"},
			},
		}.Call(t, p)
		if len(changes) > 0 || err != nil {
			t.Errorf("second %d: %v, want no change; error %v", second, changes, err)
		}
	}
}

// TestWarningsAreBounded has pods with a wrong annotation come and go: what the plugin keeps of them, and looks through in each
// tick, does not grow with the node's age.
func TestWarningsAreBounded(t *testing.T) {
	p := sdktest.Native(t, `{"policy": "auto"}`, nil)
	for pod := range 2 * maxSaid {
		_, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: int64(pod+1) * 1e9,
			Store:       []sdktest.Pod{{Fields: sdktest.Fields{"name": fmt.Sprint("job-", pod), "annotations": map[string]string{burstKey: "on"}}}},
			CgroupFiles: map[string]map[string]string{"node": {"cpu.stat": "usage_usec 1"}},
		}.Call(t, p)
		if err != nil || len(said) > maxSaid {
			t.Fatalf("after %d pods %d warnings are kept; error %v", pod+1, len(said), err)
		}
	}
}

// many is a node with so many containers in pods of two, all of which are throttled in each tick.
func many(containers int) fixture.Case {
	c := fixture.Case{
		Hook: abi.Tick, Cgroup: "v1", Grant: abi.AllCapabilities, Config: `{"policy":"auto","cfsQuotaBurstPeriodSeconds":60}`, Time: 1e9,
		CgroupFiles: map[string]map[string]string{"node": {"cpu.stat": "usage_usec 1"}}, Node: fixture.Fields{"cpus": int64(64), "cgroup_version": int64(1)},
	}
	for i := range containers {
		if i%2 == 0 {
			c.Store = append(c.Store, fixture.Pod{Fields: fixture.Fields{
				"id": fmt.Sprintf("%064x", i), "uid": fmt.Sprint("uid-", i), "qos": "Burstable", "annotations": map[string]string{burstKey: `{"policy": "auto"}`}, "labels": map[string]string{qosLabel: "LS"},
			}})
		}
		of := &c.Store[len(c.Store)-1]
		of.Containers = append(of.Containers, fixture.Fields{"id": fmt.Sprintf("%064x", 1<<32+i), "name": "web", "resources.cpu_quota": int64(50_000), "resources.cpu_period": int64(100_000)})
	}
	return c
}

// counted has each container's cpu.stat as it is in a second.
func counted(files map[string]map[string]string, containers, second int, quota string) {
	for i := range containers {
		files[fmt.Sprintf("%064x", 1<<32+i)] = map[string]string{"cpu.max": quota, "cpu.stat": fmt.Sprintf(
			"usage_usec %d\nuser_usec 1\nsystem_usec 1\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n", second*60_000, second*10, second*5, second*1_000)}
	}
	files["node"] = map[string]string{"cpu.stat": fmt.Sprintf("usage_usec %d\n", second*10_000_000)}
}

// TestManyContainers has the committed plugin scale 300 containers in one tick, below the limits of a tick.
func TestManyContainers(t *testing.T) {
	const containers = 300
	c := many(containers)
	counted(c.CgroupFiles, containers, 1, "50000 100000")
	event, err := simulate.FromFixture(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, event)
	for second := 1; second <= 3; second++ {
		event.Time = time.Unix(int64(second), 0)
		counted(event.Files, containers, second, "50000 100000")
		begin := time.Now()
		got, err := s.Run(t.Context())
		if err != nil || got.Err != nil {
			t.Fatalf("tick %d: %v, %v", second, err, got.Err)
		}
		quotas, bursts := 0, 0
		for _, w := range got.Writes {
			switch {
			case strings.HasSuffix(w.Path, "cpu.cfs_quota_us") && w.After == "60000":
				quotas++
			case strings.HasSuffix(w.Path, "cpu.cfs_burst_us"):
				bursts++
			}
		}
		t.Logf("tick %d: %d quotas and %d bursts, %d units of fuel, %d host calls, %v with all writes", second, quotas, bursts, got.Fuel, got.HostCalls, time.Since(begin))
		if got.Fuel > wasm.DefaultTickFuel/2 || second == 1 && bursts != containers+containers/2 || second == 2 && quotas != containers {
			t.Errorf("tick %d: %d quotas and %d bursts are written, and %d units of fuel used", second, quotas, bursts, got.Fuel)
		}
	}
}

// open has the committed plugin on the node of an event.
func open(t *testing.T, event *simulate.Event) *simulate.Simulator {
	t.Helper()
	code, err := os.ReadFile(cmp.Or(os.Getenv("CPU_BURST_MODULE"), "cpu-burst.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	s, err := simulate.Open(t.Context(), event, simulate.Options{ID: "20-cpu-burst", Policy: plugin.Fail, Load: func(o simulate.LoadOptions) (plugin.Plugin, error) {
		return engine.Load(t.Context(), "cpu-burst", code, wasm.PluginOptions{
			Timeout: time.Minute, // a machine that stalls breaks no limit
			Config:  []byte(o.Config), Granted: o.Granted, Features: o.Features, Observer: o.Observer,
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}
