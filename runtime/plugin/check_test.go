package plugin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestWritesAreChecked(t *testing.T) {
	type adj = *plugin.Adjustment
	entry := func(o abi.Object, f abi.Field, k, v string) func(adj) error {
		return func(a adj) error { return a.SetEntry(o, f, k, v) }
	}
	number := func(f abi.Field, v int64) func(adj) error {
		return func(a adj) error { return a.SetInt64(abi.Container, f, v) }
	}
	text := func(o abi.Object, f abi.Field, v string) func(adj) error {
		return func(a adj) error { return a.SetText(o, f, v) }
	}
	file := func(o abi.Object, name, v string) func(adj) error {
		return func(a adj) error { return a.WriteFile(o, name, v) }
	}
	const res = abi.Resources
	tests := []struct {
		name  string
		hook  abi.Hook
		files int // version of cgroups
		write func(adj) error
		want  abi.Errno
	}{
		{"annotation", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerAnnotations, "a", "b"), abi.OK},
		{"kubelet's annotation", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerAnnotations, "io.kubernetes.x", "b"), abi.Denied},
		{"kubelet's label", abi.PreRunPodSandbox, 2, entry(abi.Pod, abi.PodLabels, "io.kubernetes.pod.uid", "b"), abi.Denied},
		{"kubelet's label, deleted", abi.PreRunPodSandbox, 2, func(a adj) error { return a.DeleteEntry(abi.Pod, abi.PodLabels, "io.kubernetes.pod.uid") }, abi.Denied},
		{"annotation that is not UTF-8", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerAnnotations, "a", "\xff"), abi.Invalid},
		{"env that is not UTF-8", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerEnv, "A", "\xff"), abi.OK},
		{"env name that is not UTF-8", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerEnv, "\xff", ""), abi.Invalid},
		{"env name with =", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerEnv, "A=B", ""), abi.Invalid},
		{"env in an update", abi.PreUpdateContainerResources, 2, entry(abi.Container, abi.ContainerEnv, "A", ""), abi.ReadOnly},
		{"metadata", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodName, "x"), abi.ReadOnly},
		{"no such field", abi.PreRunPodSandbox, 2, text(abi.Pod, 999, "x"), abi.NotFound},
		{"no such object", abi.PreRunPodSandbox, 2, text(17, abi.PodName, "x"), abi.NotFound},
		{"wrong type", abi.PreCreateContainer, 2, text(abi.Container, res+abi.CPUQuota, "5"), abi.Invalid},
		{"quota", abi.PreCreateContainer, 2, number(res+abi.CPUQuota, 50_000), abi.OK},
		{"no quota", abi.PreUpdateContainerResources, 2, number(res+abi.CPUQuota, -1), abi.OK},
		{"tiny quota", abi.PreCreateContainer, 2, number(res+abi.CPUQuota, 999), abi.Invalid},
		{"oom score", abi.PreCreateContainer, 2, number(res+abi.OOMScoreAdj, 1001), abi.Invalid},
		{"quota when it starts", abi.PreStartContainer, 2, number(res+abi.CPUQuota, 50_000), abi.ReadOnly},
		{"cpuset", abi.PreCreateContainer, 2, text(abi.Container, res+abi.CpusetCpus, "0-2,7"), abi.OK},
		{"cpuset upside down", abi.PreCreateContainer, 2, text(abi.Container, res+abi.CpusetCpus, "2-0"), abi.Invalid},
		{"cpuset of words", abi.PreCreateContainer, 2, text(abi.Container, res+abi.CpusetMems, "all"), abi.Invalid},
		{"hugepages", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.HugepageLimits, "2MB", "4194304"), abi.OK},
		{"hugepages of no size", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.HugepageLimits, "2", "4194304"), abi.Invalid},
		{"unified on v2", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.Unified, "memory.high", "1"), abi.OK},
		{"unified on v1", abi.PreCreateContainer, 1, entry(abi.Container, res+abi.Unified, "memory.high", "1"), abi.Unsupported},
		{"unified key that is not UTF-8", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.Unified, "memory.\xff", "1"), abi.Invalid},
		{"unified value that is not UTF-8", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.Unified, "memory.high", "\xff"), abi.Invalid},
		{"unified elsewhere", abi.PreCreateContainer, 2, entry(abi.Container, res+abi.Unified, "../memory.high", "1"), abi.Invalid},
		{"cgroup parent", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/kubepods/x"), abi.OK},
		{"cgroup parent that climbs", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/kubepods/../x"), abi.Invalid},
		{"cgroup parent that is not UTF-8", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/kubepods/\xff"), abi.Invalid},
		{"cgroup parent with a NUL", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/kubepods/\x00"), abi.Invalid},
		{"cgroup parent that is the root", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/"), abi.Invalid},
		{"cgroup parent of two lines", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "/kubepods/a\nb"), abi.Invalid},
		{"cgroup parent slice of two lines", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "a\nb.slice"), abi.Invalid},
		{"cgroup parent slice", abi.PreRunPodSandbox, 2, text(abi.Pod, abi.PodCgroupParent, "kubepods-x.slice"), abi.OK},
		{"file", abi.PreStartContainer, 1, file(abi.Container, "cpu.idle", "1"), abi.OK},
		{"file of the other version", abi.PreStartContainer, 1, file(abi.Container, "memory.high", "1"), abi.Unsupported},
		{"file without cgroups", abi.PreStartContainer, 0, file(abi.Container, "cpu.idle", "1"), abi.Unsupported},
		{"file of a stopped container", abi.PostStopContainer, 2, file(abi.Container, "cpu.idle", "1"), abi.ReadOnly},
		{"file of the pod of a container", abi.PreCreateContainer, 2, file(abi.Pod, "cpu.idle", "1"), abi.ReadOnly},
		{"too large", abi.PreCreateContainer, 2, entry(abi.Container, abi.ContainerAnnotations, "a", strings.Repeat("x", 300<<10)), abi.TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := plugin.NewAdjustment(tt.hook, tt.files)
			err := tt.write(a)
			if got := plugin.ErrnoOf(err); got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
			if accepted := len(a.Changes()) == 1; accepted != (tt.want == abi.OK) {
				t.Errorf("accepted: %v", accepted)
			}
		})
	}
}

func TestAdjustmentIsBounded(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
	for range 256 {
		if err := a.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 5); !errors.Is(err, abi.Limit) {
		t.Errorf("change 257: %v", err)
	}
}

// What a plugin adds to a request may not make it too large for the runtime,
// and its value not the log.
func TestAdjustmentIsBoundedInBytes(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
	value, total := strings.Repeat("x", 200<<10), 0
	for i := range 10 {
		err := a.SetEntry(abi.Container, abi.ContainerAnnotations, string(rune('a'+i)), value)
		if err == nil {
			total += len(value)
		} else if !errors.Is(err, abi.TooLarge) {
			t.Fatal(err)
		}
	}
	if total == 0 || total > 1<<20 {
		t.Errorf("%d bytes were accepted", total)
	}
	if n := len(a.Changes()[0].Value()); n > 1<<10 {
		t.Errorf("%d bytes of a value go to the log", n)
	}
}

// A variable that is deleted has no value that is hidden.
func TestDeletedVariableGoesToTheLogWithoutAValue(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
	if err := errors.Join(a.SetEntry(abi.Container, abi.ContainerEnv, "A", "1"), a.DeleteEntry(abi.Container, abi.ContainerEnv, "B")); err != nil {
		t.Fatal(err)
	}
	all := a.Changes()
	if set, deleted := all[0].Value(), all[1].Value(); set != plugin.Redacted || deleted != "" {
		t.Errorf("the log shows %q of what is set, and %q of what is deleted", set, deleted)
	}
}

// What kubelet puts into a command for $(VARIABLES) is as secret as the variables are.
func TestNoCommandGoesToTheLog(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
	for _, f := range []abi.Field{abi.ContainerCommand, abi.ContainerArgs} {
		if err := a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: f, Text: string(abi.AppendList(nil, []string{"serve", "--password=hunter2"}))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range a.Changes() {
		if got := c.Value(); got != "(2 hidden)" {
			t.Errorf("%s goes to the log as %q", c.Target(), got)
		}
	}
}
