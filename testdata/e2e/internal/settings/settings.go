// Package settings is the table of cgroup files that the plugin setter writes in the tests
// of every cgroup version, and the pods whose annotations ask for it.
package settings

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Setting is a value that the plugin sets for a pod or a container of it, and the file that
// shows it in one cgroup version.
type Setting struct {
	Pod     string // its name
	Target  string // of setter: pod or the container, the kind, and the name
	Value   string // for setter
	File    string // of the kernel; in version 1 after its hierarchy, as in cpu/cpu.shares
	Without string // the file's text without the plugin
	With    string // and with it
	Shown   string // the same as cgroup version 2 shows it
}

// Object is pod, or the name of the container.
func (s Setting) Object() string {
	object, _, _ := strings.Cut(s.Target, ".")
	return object
}

// Expected is With, and Original is Without, for tests of either.
func (s Setting) Expected() string { return s.With }
func (s Setting) Original() string { return s.Without }

// Undone reports whether the file shows Without again once the plugin is removed: of a field by an
// update, which cannot clear a key of unified.
func (s Setting) Undone() bool {
	return !strings.Contains(s.Target, ".unified.")
}

// OfFile reports whether the value is a wish for the file itself, and not for a field of CRI.
func (s Setting) OfFile() bool { return strings.Contains(s.Target, ".file.") }

// Only returns the settings of which is says so.
func Only(all []Setting, is func(Setting) bool) []Setting {
	return slices.DeleteFunc(slices.Clone(all), func(s Setting) bool { return !is(s) })
}

// Foreign is the value that somebody else writes to a file: the one without the plugin, which becomes
// kubelet's value. So the cpuset for which kubelet has none is not overwritten.
func (s Setting) Foreign() string {
	if s.Target == "nice.file.cpuset.cpus" {
		return s.With
	}
	switch device, _, _ := strings.Cut(s.With, " "); s.File {
	case "io.max":
		return device + " wiops=max"
	case "blkio/blkio.throttle.write_iops_device":
		return device + " 0"
	}
	return s.Without
}

// V2 are the settings for cgroup version 2 and a block device, such as 8:0.
func V2(device string) []Setting { return choose(device, func(r row) file { return r.v2 }) }

// V1 are the settings for cgroup version 1 and a block device.
func V1(device string) []Setting { return choose(device, func(r row) file { return r.v1 }) }

func choose(device string, version func(row) file) (all []Setting) {
	on := func(text string) string { return strings.ReplaceAll(text, "DEVICE", device) }
	for _, r := range table {
		if f := version(r); f.name != "" {
			all = append(all, Setting{r.pod, r.target, on(r.value), f.name, on(f.without), on(f.with), on(r.v2.with)})
		}
	}
	return all
}

//go:embed pod.yaml
var manifest []byte

// Pod is a pod with limits and an exec probe, whose container main waits for its end.
func Pod(t testing.TB) *core.Pod {
	t.Helper()
	pod := &core.Pod{}
	if err := yaml.UnmarshalStrict(manifest, pod); err != nil {
		t.Fatalf("reading the pod's manifest: %v", err)
	}
	return pod
}

// Pods are the pods of the settings, with a container for each that a setting names.
func Pods(t testing.TB, settings []Setting) []*core.Pod {
	t.Helper()
	pods := map[string]*core.Pod{}
	for _, s := range settings {
		pod := pods[s.Pod]
		if pod == nil {
			pod = Pod(t)
			pod.Name, pod.Annotations = s.Pod, map[string]string{}
			pods[s.Pod] = pod
		}
		pod.Annotations["set.wasmproxy.io/"+s.Target] = s.Value
		known := func(c core.Container) bool { return c.Name == s.Object() }
		if s.Object() != "pod" && !slices.ContainsFunc(pod.Spec.Containers, known) {
			another := *pod.Spec.Containers[0].DeepCopy()
			another.Name = s.Object()
			pod.Spec.Containers = append(pod.Spec.Containers, another)
		}
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b *core.Pod) int { return strings.Compare(a.Name, b.Name) })
}
