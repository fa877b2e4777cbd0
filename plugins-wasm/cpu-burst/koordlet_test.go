package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// recording is loads.json, which testdata/record writes.
type recording struct {
	Node  []int64 // usage in µs, each second
	Loads map[string]struct {
		Quota int64      // µs of each 100,000
		Stat  [][4]int64 // usage in µs, periods, throttled periods, throttled time in µs
	}
}

// scenario is how the plugin and koordlet are configured while they see all loads, each as the container of a pod.
type scenario struct {
	Name   string
	Config json.RawMessage
	CPUs   int
	Alone  bool // nothing but the loads runs on the node
	Pods   map[string]struct {
		Class      string
		Limit      int64 // µs, in place of the quota that the load was recorded with
		Annotation json.RawMessage
	}
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile("testdata/koordlet/" + file)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestDecidesAsKoordlet plays recorded loads to the plugin, and wants of it the quota and the burst that koordlet's own code gives
// each container in each second. decisions.json has these; make koord runs koordlet and compares with the file.
func TestDecidesAsKoordlet(t *testing.T) {
	var r recording
	var scenarios []scenario
	var koordlet map[string]map[string][][3]int64 // by scenario and load: second, quota and burst when they change
	read(t, "loads.json", &r)
	read(t, "scenarios.json", &scenarios)
	read(t, "decisions.json", &koordlet)
	if len(r.Loads) < 10 || len(scenarios) != len(koordlet) {
		t.Fatalf("%d loads, %d scenarios, and koordlet has decided %d", len(r.Loads), len(scenarios), len(koordlet))
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			p := sdktest.Native(t, string(s.Config), nil)
			got := s.play(t, &r, func(c sdktest.Case) (sdktest.Changes, error) { return c.Call(t, p) })
			for name, want := range koordlet[s.Name] {
				if !slices.Equal(got[name], want) {
					t.Errorf("%s: the plugin decides %v\nkoordlet decides %v", name, got[name], want)
				}
			}
		})
	}
}

// TestModuleDecidesAsKoordlet plays two scenarios in which quotas rise and fall to the committed plugin, in the proxy's engine on cgroup v1.
// The proxy cuts bursts there, so that this is about quotas.
func TestModuleDecidesAsKoordlet(t *testing.T) {
	var r recording
	var scenarios []scenario
	var koordlet map[string]map[string][][3]int64
	read(t, "loads.json", &r)
	read(t, "scenarios.json", &scenarios)
	read(t, "decisions.json", &koordlet)
	for _, name := range []string{"auto, node that is full at times", "auto, until the time is used up"} {
		t.Run(name, func(t *testing.T) {
			s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.Name == name })]
			m := &module{t: t, config: string(s.Config)}
			got := s.play(t, &r, m.tick)
			for load, want := range koordlet[name] {
				if got, want := quotas(got[load]), quotas(want); !slices.Equal(got, want) {
					t.Errorf("%s: the module decides %v\nkoordlet decides %v", load, got, want)
				}
			}
		})
	}
}

// quotas are the seconds at which a quota changes, and the quotas.
func quotas(decisions [][3]int64) (all [][2]int64) {
	for _, d := range decisions {
		if len(all) == 0 || all[len(all)-1][1] != d[1] {
			all = append(all, [2]int64{d[0], d[1]})
		}
	}
	return all
}

// module is the committed plugin, on a node with cgroup v1.
type module struct {
	t      *testing.T
	config string
	event  *simulate.Event
	s      *simulate.Simulator
}

// tick returns the quotas that containers have after a tick.
func (m *module) tick(c sdktest.Case) (sdktest.Changes, error) {
	if m.s == nil {
		c.Cgroup, c.Config = "v1", m.config
		c.Node["cgroup_version"] = int64(1)
		var err error
		if m.event, err = simulate.FromFixture(fixture.Case(c), 0); err != nil {
			return nil, err
		}
		m.s = open(m.t, m.event)
	}
	m.event.Time, m.event.Files = time.Unix(0, c.Time), c.CgroupFiles
	got, err := m.s.Run(m.t.Context())
	changes := sdktest.Changes{}
	for _, p := range c.Store { // what is as it was at first is no write
		for _, of := range p.Containers {
			changes[fmt.Sprintf("container(%s) cgroup file cpu.max", of["id"])] = fmt.Sprint(of["resources.cpu_quota"])
		}
	}
	for _, w := range got.Writes {
		if filepath.Base(w.Path) == "cpu.cfs_quota_us" {
			changes["container("+filepath.Base(filepath.Dir(w.Path))+") cgroup file cpu.max"] = w.After
		}
	}
	return changes, errors.Join(err, got.Err)
}

// play returns what the plugin decides: by load, the second, the quota and the burst when they change.
func (s *scenario) play(t *testing.T, r *recording, tick func(sdktest.Case) (sdktest.Changes, error)) map[string][][3]int64 {
	decisions := map[string][][3]int64{}
	names := slices.Sorted(maps.Keys(r.Loads))
	var pods []sdktest.Pod
	for _, name := range names {
		limit := cmp.Or(s.Pods[name].Limit, r.Loads[name].Quota)
		decisions[name] = [][3]int64{{0, limit, 0}}
		fields := sdktest.Fields{"id": "pod-" + name, "uid": name, "qos": "Burstable", "namespace": "default", "name": name}
		if class := s.Pods[name].Class; class != "" {
			fields["labels"] = map[string]string{qosLabel: class}
		}
		if text := s.Pods[name].Annotation; text != nil {
			fields["annotations"] = map[string]string{burstKey: string(text)}
		}
		pods = append(pods, sdktest.Pod{Fields: fields, Containers: []sdktest.Fields{{
			"id": name, "name": "main", "resources.cpu_quota": limit, "resources.cpu_period": int64(100_000), "resources.cpu_shares": limit * 1_024 / 100_000,
		}}})
	}
	for second := range r.Node {
		used, files := r.Node[second], map[string]map[string]string{}
		if s.Alone {
			used = 1
		}
		for _, name := range names {
			stat := r.Loads[name].Stat[second]
			text := fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n", stat[0], stat[1], stat[2], stat[3])
			quota := decisions[name][len(decisions[name])-1][1]
			files[name] = map[string]string{"cpu.stat": text, "cpu.max": fmt.Sprint(quota, " 100000")}
			files["pod-"+name] = map[string]string{"cpu.stat": text}
			if s.Alone {
				used += stat[0]
			}
		}
		files["node"] = map[string]string{"cpu.stat": fmt.Sprint("usage_usec ", used)}
		changes, err := tick(sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: int64(second+1) * 1e9, Store: pods, CgroupFiles: files,
			Node: sdktest.Fields{"cpus": int64(s.CPUs)},
		})
		if err != nil {
			t.Fatalf("second %d: %v", second, err)
		}
		for _, name := range names {
			note := decisions[name][len(decisions[name])-1]
			note[0] = int64(second)
			for i, file := range []string{"cpu.max", "cpu.max.burst"} {
				if value, ok := changes["container("+name+") cgroup file "+file]; ok {
					fmt.Sscan(value, &note[1+i])
				}
			}
			if last := len(decisions[name]) - 1; second == 0 {
				decisions[name][last] = note
			} else if note[1] != decisions[name][last][1] || note[2] != decisions[name][last][2] {
				decisions[name] = append(decisions[name], note)
			}
		}
	}
	return decisions
}
