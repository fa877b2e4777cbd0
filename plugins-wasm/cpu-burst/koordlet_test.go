package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
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
			got := s.play(t, &r)
			for name, want := range koordlet[s.Name] {
				if !slices.Equal(got[name], want) {
					t.Errorf("%s: the plugin decides %v\nkoordlet decides %v", name, got[name], want)
				}
			}
		})
	}
}

// play returns what the plugin decides: by load, the second, the quota and the burst when they change.
func (s *scenario) play(t *testing.T, r *recording) map[string][][3]int64 {
	p := sdktest.Native(t, string(s.Config), nil)
	decisions := map[string][][3]int64{}
	names := slices.Sorted(maps.Keys(r.Loads))
	var pods []sdktest.Pod
	for _, name := range names {
		limit := cmp.Or(s.Pods[name].Limit, r.Loads[name].Quota)
		decisions[name] = [][3]int64{{0, limit, 0}}
		fields := sdktest.Fields{"id": "pod-" + name, "namespace": "default", "name": name}
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
			files["pod-"+name] = files[name]
			if s.Alone {
				used += stat[0]
			}
		}
		files["node"] = map[string]string{"cpu.stat": fmt.Sprint("usage_usec ", used)}
		changes, err := sdktest.Case{
			Hook: abi.Tick, Grant: abi.AllCapabilities, Cgroup: "v2", Time: int64(second+1) * 1e9, Store: pods, CgroupFiles: files,
			Node: sdktest.Fields{"cpus": int64(s.CPUs)},
		}.Call(t, p)
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
