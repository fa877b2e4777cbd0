package plugin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const unified = abi.Resources + abi.Unified

// The runtime writes what unified names to the container's cgroup as root, one line after
// another: a process of the node in cgroup.procs is moved there, and killed with the container.
func TestUnifiedWritesOnlyFilesOfTheTable(t *testing.T) {
	for _, tt := range []struct {
		file, value string
		want        abi.Errno
		reason      string
	}{
		{"cgroup.procs", "1", abi.Denied, "no plugin may write this file of a container with unified, only cpu.weight, "},
		{"cgroup.kill", "1", abi.Denied, "only cpu.weight, "},
		{"cgroup.freeze", "1", abi.Denied, "only cpu.weight, "},
		{"cgroup.subtree_control", "-memory", abi.Denied, "only cpu.weight, "},
		{"foo.bar", "1", abi.Denied, "only cpu.weight, "},
		{"memory.hihg", "1", abi.Denied, "memory.high"},
		{"..", "1", abi.Denied, "only cpu.weight, "},
		{"../x/memory.high", "1", abi.Invalid, "not the name of a cgroup v2 file"},
		{"memory.high", "100Mi", abi.Invalid, `container.resources.unified["memory.high"]: invalid: "100Mi": want bytes, or max`},
		{"memory.max", "1\n2", abi.Invalid, `"1\n2": want bytes, or max`},
		{"io.max", "8:0 rbps=1\n1", abi.Invalid, "one line for each device"},
	} {
		a := plugin.NewAdjustment(abi.PreCreateContainer, 2)
		err := a.SetEntry(abi.Container, unified, tt.file, tt.value)
		if plugin.ErrnoOf(err) != tt.want || !strings.Contains(err.Error(), tt.reason) || len(a.Changes()) > 0 {
			t.Errorf("%s=%q: got %v and %v, want %v with %q", tt.file, tt.value, err, a.Changes(), tt.want, tt.reason)
		}
		a = plugin.NewAdjustment(abi.PreUpdatePodSandboxResources, 2)
		if err := a.SetEntry(abi.Pod, abi.Overhead+abi.Unified, tt.file, tt.value); plugin.ErrnoOf(err) != tt.want {
			t.Errorf("%s=%q of a pod: got %v, want %v", tt.file, tt.value, err, tt.want)
		}
	}
	a := plugin.NewAdjustment(abi.PreCreateContainer, 2)
	if err := a.SetEntry(abi.Container, unified, "io.max", " 8:16 riops=07  rbps=1 \n8:0 wbps=max\n"); err != nil || a.Changes()[0].Text != "8:16 rbps=1 riops=7\n8:0 wbps=max" {
		t.Errorf("two devices: %v, %v", err, a.Changes())
	}
	// What is kubelet's own and on no list stays.
	if err := a.DeleteEntry(abi.Container, unified, "cgroup.freeze"); plugin.ErrnoOf(err) != abi.Denied {
		t.Errorf("a file that is not on the list is taken away: %v", err)
	}
}

// A CRI field, its key of unified and its cgroup file are one thing, by the table: two plugins
// that want different values of it conflict, whichever way each takes.
func TestConflictsFollowTheTableOfFiles(t *testing.T) {
	in := func(file, value string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetEntry(abi.Container, unified, file, value)
		}
	}
	file := func(file, value string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.WriteFile(abi.Container, file, value)
		}
	}
	hugepages := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.Resources+abi.HugepageLimits, "2MB", "4194304")
	}
	cpuset := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetText(abi.Container, abi.Resources+abi.CpusetCpus, "0-1")
	}
	for _, tt := range []struct {
		name          string
		first, second function
		conflict      bool
	}{
		{"field and file: shares", set(abi.CPUShares, 1024), in("cpu.weight", "39"), true},
		{"field and file: shares as nice", set(abi.CPUShares, 1024), in("cpu.weight.nice", "0"), true},
		{"two views of one value", in("cpu.weight", "5"), in("cpu.weight.nice", "5"), true},
		{"file and field: quota", in("cpu.max", "50000 100000"), set(abi.CPUQuota, 50_000), true},
		{"file and field: period", in("cpu.max", "50000 100000"), set(abi.CPUPeriod, 100_000), true},
		{"two fields of one file", set(abi.CPUQuota, 50_000), set(abi.CPUPeriod, 100_000), false},
		{"file and field: memory", in("memory.max", "4096"), set(abi.MemoryLimit, 4096), true},
		{"file and field: swap", in("memory.swap.max", "4096"), set(abi.MemorySwap, 4096), true},
		{"field and file: cpuset", cpuset, in("cpuset.cpus", "0-1"), true},
		{"field and file: huge pages", hugepages, in("hugetlb.2MB.max", "8388608"), true},
		{"field and file: reserved huge pages", hugepages, in("hugetlb.2MB.rsvd.max", "8388608"), true},
		{"huge pages of another size", hugepages, in("hugetlb.1GB.max", "0"), false},
		{"two files of one field", in("hugetlb.2MB.max", "0"), in("hugetlb.2MB.rsvd.max", "4194304"), false},
		{"both ways, one value in two spellings", in("io.latency", "008:16  target=1"), file("io.latency", "8:16 target=1"), false},
		{"both ways, two values", in("io.latency", "8:16 target=1"), file("io.latency", "8:16 target=2"), true},
		{"other files", in("memory.low", "4096"), in("memory.min", "8192"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, _, err := dispatch(t, member("10-a", plugin.Fail, tt.first), member("20-b", plugin.Fail, tt.second))
			if got := plugin.ErrnoOf(err) == abi.Conflict; got != tt.conflict || !tt.conflict && err != nil {
				t.Errorf("got %v", err)
			}
			_, _, _, err = dispatch(t, member("10-a", plugin.Fail, tt.second), member("20-b", plugin.Fail, tt.first))
			if got := plugin.ErrnoOf(err) == abi.Conflict; got != tt.conflict {
				t.Errorf("the other way round: got %v", err)
			}
		})
	}
	both := func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.SetEntry(abi.Pod, abi.Overhead+abi.Unified, "cpu.weight", "39"); err != nil {
			return err
		}
		return adj.SetInt64(abi.Pod, abi.Resources+abi.CPUShares, 512) // another group of fields
	}
	later := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.SetInt64(abi.Pod, abi.Overhead+abi.CPUShares, 1024); plugin.ErrnoOf(err) != abi.Conflict {
			t.Errorf("a pod's overhead and its unified: %v", err)
		}
		return adj.SetEntry(abi.Pod, abi.Overhead+abi.Unified, "cpu.max", "max")
	}
	members := []plugin.Member{member("10-a", plugin.Fail, both), member("20-b", plugin.Fail, later)}
	for i := range members {
		members[i].Hooks = abi.HookSetOf(abi.PreUpdatePodSandboxResources)
	}
	owned, err := plugin.NewChain(observe.Discard(), 2, members...).Dispatch(t.Context(), nil, &subject{hook: abi.PreUpdatePodSandboxResources})
	if err != nil || len(owned) != 3 {
		t.Errorf("another file: %v, %v", owned, err)
	}
}
