package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"os"
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

// TestNative plays to the source what the tests of the folder above play to the
// committed plugin.
func TestNative(t *testing.T) { sdktest.Run(t, "testdata/memory-qos.json") }

// TestThrottledIsKubeletsFormula compares with the expression of generateLinuxContainerResources
// in kubelet v1.36, which computes in floating point and so may be off by one page.
func TestThrottledIsKubeletsFormula(t *testing.T) {
	for _, factor := range []string{"0.9", "0.8", "0.3333", "1", "1.0", "0.0001"} {
		var wrong error
		var float float64
		config.factor, wrong = parseFactor(factor)
		if _, err := fmt.Sscan(factor, &float); wrong != nil || err != nil {
			t.Fatalf("factor %s is refused: %v, %v", factor, wrong, err)
		}
		for _, request := range []int64{0, 1, 4095, 100 << 20, 3<<30 + 7} {
			for _, ceiling := range []int64{request, request + 1, request + 4096, 2*request + 12345, 1 << 40} {
				want := int64(math.Floor(float64(request)+(float64(ceiling)-float64(request))*float)/float64(pageSize)) * pageSize
				if got := throttled(request, ceiling); got > want+pageSize || got < want-pageSize {
					t.Errorf("factor %s, request %d, ceiling %d: got %d, want %d", factor, request, ceiling, got, want)
				}
			}
		}
	}
	config.factor = whole
	if got := throttled(0, math.MaxInt64); got < math.MaxInt64-pageSize {
		t.Errorf("the largest ceiling gives %d", got)
	}
}

// TestFactors wants a clear answer to every text that is a number in JSON.
func TestFactors(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 10_000, "1.0": 10_000, "1.0000": 10_000, "0.5": 5_000, "0.0001": 1, "0.12": 1_200,
		"0": 0, "0.0": 0, "2": 0, "1.0001": 0, "-0.5": 0, "0.00001": 0, "0.90000": 0, "0.": 0, "": 0, "9e-1": 0, "0.5e0": 0, "0.-1": 0,
	} {
		got, err := parseFactor(text)
		if (err == nil) != (want > 0) || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestRequestByScoreIsBelowTheRequest computes kubelet's score of many requests, and wants
// from it a request that is not larger, and smaller by less than two thousandths of the memory.
func TestRequestByScoreIsBelowTheRequest(t *testing.T) {
	const memory = 16<<30 + 12345
	for request := int64(0); request < memory; request += 37 << 20 {
		score := min(max(1000-1000*request/memory, 3), 999) // GetContainerOOMScoreAdjust
		got := requestByScore(score, memory, 0)
		if got > request || got < request-memory/500 && request < memory/1000*997 {
			t.Errorf("request %d has the score %d, which gives %d", request, score, got)
		}
	}
}

// TestWarnsOnce has one instance of the committed plugin say once that it does nothing,
// however many events come.
func TestWarnsOnce(t *testing.T) {
	s := simulated(t, fixture.Case{
		Hook: abi.PreCreateContainer, Cgroup: "v1", Grant: abi.DefaultGrant(), Pod: fixture.Fields{"qos": "Guaranteed"},
		Container: fixture.Fields{"name": "web", "resources.memory_limit_in_bytes": int64(1 << 20)},
	})
	for range 2 {
		if err := s.Call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Run(t.Context())
	if err != nil || got.Err != nil || len(got.Writes) > 0 {
		t.Errorf("on cgroup v1 the plugin writes %v, error %v, %v", got.Writes, got.Err, err)
	}
	if len(got.Lines) != 1 || !strings.Contains(got.Lines[0], "UNSUPPORTED") {
		t.Errorf("three calls log %v, want one line", got.Lines)
	}
}

// containerID is an id as runtimes make them.
func containerID(i int) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i >> 8), byte(i)}))
}

// TestManyStall has the committed plugin look at 300 containers that stall for memory, which is more than a call can
// change. The first tick raises memory.high of those that stall most, and of as many others as it has room for. Those that
// it has no room for come first in the next ones, until all have their limit.
func TestManyStall(t *testing.T) {
	const most = 120 // stall nearly all of the time
	all, files := make([]fixture.Fields, 300), map[string]map[string]string{}
	for i := range all {
		id := containerID(i)
		all[i] = fixture.Fields{"id": id, "name": "web", "resources.oom_score_adj": int64(999), "resources.memory_limit_in_bytes": int64(40_960_000)}
		avg := "25.00"
		if i >= len(all)-most {
			avg = "97.00"
		}
		files[id] = map[string]string{"memory.high": "36864000", "memory.current": "1000000", "memory.pressure": "some avg10=" + avg + " avg60=0.00 avg300=0.00 total=0\n"}
	}
	s := simulated(t, fixture.Case{
		Hook: abi.Tick, Cgroup: "v2", Grant: abi.AllCapabilities, Config: `{"pressure":{}}`,
		Store: []fixture.Pod{{Fields: fixture.Fields{"qos": "Burstable"}, Containers: all}}, CgroupFiles: files,
	})
	last := map[string]string{} // by container: memory.high
	const ticks = 14            // 3 for each of 4 steps, and 2
	for n := range ticks {
		got, err := s.Run(t.Context())
		if err != nil || got.Err != nil {
			t.Fatalf("tick %d: %v, %v", n+1, err, got.Err)
		}
		if got.Fuel > 16_000_000 {
			t.Errorf("tick %d used %d units of fuel, and has 20 million", n+1, got.Fuel)
		}
		for _, w := range got.Writes {
			last[filepath.Base(filepath.Dir(w.Path))] = w.After
		}
		urgent := 0
		for i := len(all) - most; i < len(all); i++ {
			if last[containerID(i)] != "" {
				urgent++
			}
		}
		if n == 0 && (len(last) < most || urgent < most) {
			t.Errorf("the first tick has served %d containers, and %d of the %d that stall most", len(last), urgent, most)
		}
		if n == 2 && len(last) < len(all) {
			t.Errorf("three ticks have served %d of %d containers", len(last), len(all))
		}
	}
	for id, high := range last {
		if high != "40960000" {
			t.Errorf("after %d ticks memory.high of %s is %s, want the limit", ticks, id, high)
		}
	}
}

// TestManyContainers has the committed plugin look at more containers than one tick reads, of which each twentieth stalls.
func TestManyContainers(t *testing.T) {
	all, files := make([]fixture.Fields, 560), map[string]map[string]string{}
	stall := 0
	for i := range all {
		id := containerID(i)
		all[i] = fixture.Fields{"id": id, "name": "web", "resources.oom_score_adj": int64(999), "resources.memory_limit_in_bytes": int64(40_960_000)}
		avg := "0.00"
		if i%20 == 0 {
			avg = "25.00"
			stall++
		}
		files[id] = map[string]string{"memory.high": "36864000", "memory.current": "1000000", "memory.pressure": "some avg10=" + avg + " avg60=0.00 avg300=0.00 total=0\n"}
	}
	s := simulated(t, fixture.Case{
		Hook: abi.Tick, Cgroup: "v2", Grant: abi.AllCapabilities, Config: `{"pressure":{}}`,
		Store: []fixture.Pod{{Fields: fixture.Fields{"qos": "Burstable"}, Containers: all}}, CgroupFiles: files,
	})
	last := map[string]string{} // by container: memory.high
	for n := range 2 {
		got, err := s.Run(t.Context())
		if err != nil || got.Err != nil || got.Fuel > 16_000_000 {
			t.Fatalf("tick %d: %v, %v, fuel %d", n+1, err, got.Err, got.Fuel)
		}
		for _, w := range got.Writes {
			last[filepath.Base(filepath.Dir(w.Path))] = w.After
		}
	}
	if len(last) != stall {
		t.Errorf("two ticks have served %d of %d containers that stall", len(last), stall)
	}
}

// TestQuietTickIsCheap has the committed plugin look at 250 containers that do not stall. Only the first ticks of an
// instance look at each of them.
func TestQuietTickIsCheap(t *testing.T) {
	all, files := make([]fixture.Fields, 250), map[string]map[string]string{}
	for i := range all {
		id := fmt.Sprint("container-", i)
		all[i] = fixture.Fields{"id": id, "name": "web", "resources.oom_score_adj": int64(999), "resources.memory_limit_in_bytes": int64(40_960_000)}
		files[id] = map[string]string{"memory.high": "36864000", "memory.current": "1000000", "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"}
	}
	s := simulated(t, fixture.Case{
		Hook: abi.Tick, Cgroup: "v2", Grant: abi.AllCapabilities, Config: `{"pressure":{}}`,
		Store: []fixture.Pod{{Fields: fixture.Fields{"qos": "Burstable"}, Containers: all}}, CgroupFiles: files,
	})
	for range 2 { // a tick has room for 128
		if err := s.Call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Run(t.Context())
	if err != nil || got.Err != nil || len(got.Writes) > 0 {
		t.Fatalf("the plugin writes %v, error %v, %v", got.Writes, got.Err, err)
	}
	if got.HostCalls == 0 || got.HostCalls >= 20 {
		t.Errorf("a tick made %d host calls, want less than 20", got.HostCalls)
	}
}

// TestTickReadsLargeFiles has the committed plugin look at containers whose files are together
// larger than what one call of the host returns.
func TestTickReadsLargeFiles(t *testing.T) {
	all, files := make([]fixture.Fields, 30), map[string]map[string]string{}
	pressure := "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" + strings.Repeat("x", 60_000)
	for i := range all {
		id := fmt.Sprint("container-", i)
		all[i] = fixture.Fields{"id": id, "name": "web"}
		files[id] = map[string]string{"memory.high": "36864000", "memory.current": "1000000", "memory.pressure": pressure}
	}
	s := simulated(t, fixture.Case{
		Hook: abi.Tick, Cgroup: "v2", Grant: abi.AllCapabilities, Config: `{"pressure":{}}`, Store: []fixture.Pod{{Containers: all}}, CgroupFiles: files,
	})
	if got, err := s.Run(t.Context()); err != nil || got.Err != nil {
		t.Errorf("the tick fails: %v, %v", got.Err, err)
	}
}

// simulated has the committed plugin in front of the call of an event.
func simulated(t *testing.T, c fixture.Case) *simulate.Simulator {
	t.Helper()
	event, err := simulate.FromFixture(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, event)
}

func open(t *testing.T, event *simulate.Event) *simulate.Simulator {
	t.Helper()
	code, err := os.ReadFile("memory-qos.wasm")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	s, err := simulate.Open(t.Context(), event, simulate.Options{ID: "20-memory-qos", Policy: plugin.Fail, Load: func(o simulate.LoadOptions) (plugin.Plugin, error) {
		return engine.Load(t.Context(), "memory-qos", code, wasm.PluginOptions{
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

// TestRaisedAreLoweredLater plays ticks to one instance: it raises memory.high up to the limit while
// the container stalls, keeps it in between, and lowers it to the formula's when it is quiet and uses less.
func TestRaisedAreLoweredLater(t *testing.T) {
	p := sdktest.Native(t, `{"pressure":{}}`, nil)
	high := "36864000" // 0.9 of the limit
	for n, step := range []struct{ avg10, used, want string }{
		{"0.00", "0", "36864000"}, {"10.00", "36864000", "37888000"}, {"99.99", "37888000", "38912000"}, {"12.00", "1", "39936000"}, {"12.00", "1", "40960000"},
		{"12.00", "1", "40960000"}, {"5.00", "1", "40960000"}, {"0.99", "39936001", "40960000"}, {"0.99", "39936000", "39936000"},
		{"0.00", "1", "38912000"}, {"0.00", "1", "37888000"}, {"0.00", "1", "36864000"}, {"0.00", "1", "36864000"},
	} {
		changes, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2",
			Store: []sdktest.Pod{{Fields: sdktest.Fields{"qos": "Burstable"}, Containers: []sdktest.Fields{
				{"id": "a", "name": "web", "resources.oom_score_adj": int64(999), "resources.memory_limit_in_bytes": int64(40_960_000)},
			}}},
			CgroupFiles: map[string]map[string]string{"a": {"memory.high": high, "memory.current": step.used, "memory.pressure": "some avg10=" + step.avg10 + " avg60=0.00 avg300=0.00 total=0\n"}},
		}.Call(t, p)
		if err != nil {
			t.Fatal(err)
		}
		if now, ok := changes["container(a) cgroup file memory.high"]; ok {
			high = now
		}
		if high != step.want {
			t.Errorf("tick %d, %s %% of the time stalled: memory.high is %s, want %s", n+1, step.avg10, high, step.want)
		}
	}
}

// TestResourcesThatAreNotReported synchronizes a pod with a container whose resources the runtime does
// not report, as cri-dockerd after a restart of the proxy: that one is left alone, with one line in the log.
func TestResourcesThatAreNotReported(t *testing.T) {
	var log strings.Builder
	p := sdktest.Native(t, "", slog.New(slog.NewTextHandler(&log, nil)))
	for _, hook := range []abi.Hook{abi.Synchronize, abi.PostStartContainer} {
		changes, err := sdktest.Case{
			Hook: hook, Grant: abi.AllCapabilities, Cgroup: "v2", Pod: sdktest.Fields{"id": "p", "qos": "Guaranteed"},
			Siblings: []sdktest.Fields{
				{"id": "old", "name": "old", "state": "running", "resources.memory_limit_in_bytes": 8192, "resources.oom_score_adj": abi.Unsupported, "resources.unified": abi.Unsupported},
				{"id": "new", "name": "new", "state": "running", "resources.memory_limit_in_bytes": 4096},
			},
			CgroupFiles: map[string]map[string]string{"old": {"memory.current": "1"}, "new": {"memory.current": "1"}},
		}.Call(t, p)
		for target := range changes {
			if err != nil || strings.Contains(target, "old") || changes[target] != "4096" {
				t.Errorf("%v: error %v, changes %v", hook, err, changes)
			}
		}
		if len(changes) == 0 {
			t.Errorf("%v changes nothing, error %v", hook, err)
		}
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "are not reported") {
		t.Errorf("the log has %q", log.String())
	}
}

// TestPassedOver has a container end between two ticks of a round, so that the list of containers is shorter and the round passes
// over one whose memory.high is raised. It is lowered again nevertheless.
func TestPassedOver(t *testing.T) {
	p := sdktest.Native(t, `{"pressure": {}}`, nil)
	complete = true // all that are raised are known
	var all []sdktest.Fields
	for i := range portion + 8 {
		all = append(all, sdktest.Fields{"id": fmt.Sprintf("%04d", i), "resources.oom_score_adj": 999, "resources.memory_limit_in_bytes": 40_960_000})
	}
	raised := all[portion]["id"].(string)
	tick := func(of []sdktest.Fields, avg, high string) string {
		files := map[string]map[string]string{}
		for _, c := range of {
			files[c["id"].(string)] = map[string]string{"memory.pressure": "some avg10=0.00 ", "memory.high": "36864000", "memory.current": "1000000"}
		}
		files[raised]["memory.pressure"], files[raised]["memory.high"] = "some avg10="+avg+" ", high
		changes, err := sdktest.Case{
			Hook: abi.Tick, Cgroup: "v2", Grant: abi.AllCapabilities, CgroupFiles: files,
			Store: []sdktest.Pod{{Fields: sdktest.Fields{"qos": "Burstable"}, Containers: of}},
		}.Call(t, p)
		if err != nil {
			t.Fatal(err)
		}
		return changes["container("+raised+") cgroup file memory.high"]
	}
	tick(all, "25.00", "36864000")
	high := tick(all, "25.00", "36864000")
	if high == "" {
		t.Fatal("memory.high is not raised")
	}
	tick(all, "0.00", high)
	tick(all[1:], "0.00", high) // the list begins with the second one
	if got := tick(all[1:], "0.00", high); got != "36864000" {
		t.Errorf("after it was raised to %s, memory.high is set to %q", high, got)
	}
}
