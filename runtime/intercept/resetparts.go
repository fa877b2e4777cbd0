package intercept

import (
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// fieldResets are the changes of a container's resources that resetFields asks for.
type fieldResets map[ledger.Target]plugin.Change

// resources is what an update with the changes names.
func (f fieldResets) resources() *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
	for _, c := range f {
		o.Set(&c)
	}
	return r
}

// parts returns the changes in parts that can be sent on their own, sorted by their names.
func (f fieldResets) parts() (all []fieldResets) {
	byName := map[string]fieldResets{}
	for t, c := range f {
		name := partOf(t)
		if byName[name] == nil {
			byName[name] = fieldResets{}
		}
		byName[name][t] = c
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// partOf names the part of an update that a field is in. Those in one part are written together by
// runtimes, as namePartners knows, or the kernel checks one against the other: a burst against the
// quota, a weight against cpu.idle.
func partOf(t ledger.Target) string {
	x, ok := fileOf(t)
	switch {
	case !ok:
		return string(t)
	case x.file == rules.CPUBurst:
		return rules.CPUMax
	case x.file == rules.CPUIdle, x.file == rules.OtherView("cpu.weight"):
		return "cpu.weight"
	case x.file == "memory.swap.max":
		return rules.MemoryMax
	case strings.HasPrefix(x.file, "cpuset."):
		return "cpuset"
	}
	return x.file
}
