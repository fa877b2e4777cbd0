package sdk

import (
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// hostCall runs f in a hook of a container, on a node with cgroup v2.
func hostCall(t *testing.T, needs []Capability, f func()) sdktest.Changes {
	t.Helper()
	register(t, func() {
		Plugin("p", "1").Needs(needs...).OnPreCreateContainer(func(*PreCreateContainer) error { f(); return nil })
	})
	changes, err := sdktest.Case{
		Hook: abi.PreCreateContainer, Grant: abi.AllCapabilities, Cgroup: "v2",
		Pod: sdktest.Fields{"id": "p", "labels": map[string]string{"b": "2", "a": "1"}}, Container: sdktest.Fields{"id": "c"},
		Store:   []sdktest.Pod{{Fields: sdktest.Fields{"id": "q"}, Containers: []sdktest.Fields{{"id": "d"}}}},
		Earlier: sdktest.Changes{"container.resources.cpu_quota": "5000"},
	}.Call(t, sdktest.Native(t, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// A case answers reads as a node does: by the table of fields, and NOT_FOUND for all else.
func TestNativeReadsGoByTheTable(t *testing.T) {
	hostCall(t, all(), func() {
		for name, result := range map[string]int32{
			"absent":         hostGetI64(abi.Container, abi.ContainerRunAsUser, nil),
			"no event field": hostGet(abi.Event, abi.EventImage, nil, 0),
			"of no object":   hostGet(abi.Object(5), abi.PodName, nil, 0),
			"of no field":    hostGet(abi.Pod, 99, nil, 0),
			"of other type":  hostGetI64(abi.Pod, abi.PodID, nil),
			"no map":         hostMapGet(abi.Pod, abi.PodID, "a", nil, 0),
			"no key":         hostMapGet(abi.Pod, abi.PodLabels, "c", nil, 0),
			"no container":   hostPodFind(abi.ByContainerID, "p"),
			"no kind":        hostPodFind(7, "p"),
			"no pod":         hostContainerList(abi.Container, nil, 0),
			"no file":        hostCgroupGet(abi.Container, "cpu.stat", nil, 0),
			"no value":       hostKVGet("key", nil, 0),
			"no request":     hostCRIRaw(nil, 0),
		} {
			if result != int32(abi.NotFound) {
				t.Errorf("%s: %d, want NOT_FOUND", name, result)
			}
		}
		if pod := (Pod{}); pod.ID() != "p" || pod.Name() != "" {
			t.Errorf("the id is %q, the name %q", pod.ID(), pod.Name())
		}
		var keys string
		for key := range (Pod{}).Labels() {
			keys += key
		}
		if list := (Pod{}).Containers(); keys != "ab" || len(list) != 1 || list[0].Pod().ID() != "p" {
			t.Errorf("the labels are %s, the containers %v", keys, list)
		}
	})
}

// What a case leaves out is as a node has it, also without a fixture.
func TestNativeCaseIsComplete(t *testing.T) {
	var got []string
	register(t, func() {
		Plugin("p", "1").Needs(all()...).OnPreStartContainer(func(c *PreStartContainer) error {
			got = []string{c.ID(), c.Pod().ID(), c.Pod().CgroupParent(), Node.RuntimeName(), readText("", abi.Event, abi.EventMethod)}
			for _, other := range c.Pod().Containers() {
				got = append(got, other.ID())
			}
			return nil
		})
	})
	c := sdktest.Case{Hook: abi.PreStartContainer, Pod: sdktest.Fields{"qos": "BestEffort"}, Siblings: []sdktest.Fields{{"name": "log"}}}
	want := []string{"container", "pod", "/kubepods/besteffort/pod", "containerd", "StartContainer", "container", "pod-container-1"}
	if _, err := c.Call(t, sdktest.Native(t, "", nil)); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
}

// Without capabilities every function that needs one is denied, and changes nothing.
func TestNativeDenies(t *testing.T) {
	changes := hostCall(t, nil, func() {
		for name, result := range map[string]int32{
			"map_get": hostMapGet(abi.Container, abi.ContainerEnv, "A", nil, 0), "cri_raw": hostCRIRaw(nil, 0),
			"cgroup_get": hostCgroupGet(abi.Pod, "cpu.stat", nil, 0), "pod_find": hostPodFind(abi.ByPodID, "p"),
			"cgroup_read": hostCgroupRead("\x01\x00\x00\x00", string(abi.AppendList(nil, []string{"cpu.stat"})), nil, 0),
			"pod_list":    hostPodList("", nil, 0), "container_list": hostContainerList(abi.Pod, nil, 0),
			"set_i64": hostSetI64(abi.Container, abi.Resources+abi.CPUShares, 2), "cgroup_set": hostCgroupSet(abi.Container, "cpu.idle", "1"),
			"metric": hostMetric(abi.MetricAdd, "a", 1), "kv_get": hostKVGet("k", nil, 0), "kv_set": hostKVSet("k", "v"), "kv_del": hostKVDel("k"),
		} {
			if result != int32(abi.Denied) {
				t.Errorf("%s: %d, want DENIED", name, result)
			}
		}
	})
	if len(changes) > 0 {
		t.Errorf("it asks for %v", changes)
	}
}

// What a hook cannot change, and what an earlier plugin has set, is refused.
func TestNativeRefusesChanges(t *testing.T) {
	changes := hostCall(t, all(), func() {
		own, other := abi.Object(hostPodFind(abi.ByContainerID, "c")), abi.Object(hostPodFind(abi.ByContainerID, "d"))
		shares := abi.Resources + abi.CPUShares
		for name, tt := range map[string]struct {
			got  int32
			want abi.Errno
		}{
			"the pod's annotations":          {hostMapSet(abi.Pod, abi.PodAnnotations, "a", "b"), abi.ReadOnly},
			"the pod's cgroup":               {hostCgroupSet(abi.Pod, "cpu.idle", "1"), abi.ReadOnly},
			"the event's own, by its handle": {hostSetI64(own, shares, 2), abi.ReadOnly},
			"a name, by a handle":            {hostSetBytes(other, abi.ContainerName, "x"), abi.ReadOnly},
			"an entry deleted, by a handle":  {hostMapDel(other, abi.Resources+abi.Unified, "memory.high"), abi.Unsupported},
			"another type":                   {hostSetI64(abi.Container, abi.ContainerImage, 2), abi.Invalid},
			"no key":                         {hostMapSet(abi.Container, abi.ContainerEnv, "", "x"), abi.Invalid},
			"kubelet's annotation":           {hostMapSet(abi.Container, abi.ContainerAnnotations, "io.kubernetes.x", ""), abi.Denied},
			"no field":                       {hostSetI64(abi.Container, 99, 2), abi.NotFound},
			"another value than before":      {hostSetI64(abi.Container, abi.Resources+abi.CPUQuota, 6000), abi.Conflict},
			"out of range":                   {hostSetI64(abi.Container, abi.Resources+abi.CPUShares, 1), abi.Invalid},
			"below no limit":                 {hostSetI64(abi.Container, abi.Resources+abi.MemoryLimit, -2), abi.Invalid},
			"out of range, not granted here": {hostSetI64(abi.Pod, abi.Resources+abi.CPUShares, 1), abi.ReadOnly},
			"the same value as before":       {hostSetI64(abi.Container, abi.Resources+abi.CPUQuota, 5000), abi.OK},
			"another container":              {hostSetI64(other, shares, 2), abi.OK},
		} {
			if tt.got != int32(tt.want) {
				t.Errorf("%s: %d, want %d", name, tt.got, tt.want)
			}
		}
	})
	if len(changes) != 2 || changes["container(d).resources.cpu_shares"] != "2" {
		t.Errorf("it asks for %v", changes)
	}
}
