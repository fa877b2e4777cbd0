package cgroupv2_test

import (
	"strings"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
)

// setting is what the plugin is asked to set, and what the kernel shows then.
type setting struct {
	target string // of the plugin setter: pod or the container, the kind, and the name
	value  string
	file   string // of the pod's or the container's cgroup
	want   string
}

// settings are all that the plugin sets for the pod of the tests.
var settings = []setting{
	{"main.field.cpu_quota", "30000", "cpu.max", "30000 100000"},
	{"main.field.cpu_shares", "256", "cpu.weight", "35"}, // as runc translates shares
	{"main.field.memory_limit", "50331648", "memory.max", "50331648"},
	{"main.unified.memory.high", "33554432", "memory.high", "33554432"},
}

// withSettings returns the pod with the annotations that make the plugin set everything.
func withSettings(pod *core.Pod, settings []setting) *core.Pod {
	pod = pod.DeepCopy()
	pod.Annotations = map[string]string{}
	for _, s := range settings {
		pod.Annotations["set.wasmproxy.io/"+s.target] = s.value
	}
	return pod
}

// expectSettings checks that the kernel has all settings, for the pod and its container main.
func expectSettings(t *testing.T, n *guest.Node, pod *core.Pod, settings []setting) {
	t.Helper()
	want := map[string]map[string]string{"pod": {}, "main": {}}
	for _, s := range settings {
		object, _, _ := strings.Cut(s.target, ".")
		want[object][s.file] = s.want
	}
	group := cgroup(t, n, pod)
	group.Expect(t, want["main"])
	group.Parent().Expect(t, want["pod"])
}
