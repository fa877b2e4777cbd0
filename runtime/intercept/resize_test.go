package intercept_test

import (
	"context"
	"errors"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// kubelet may resize a container to just the value that a plugin has set. That is kubelet's then,
// and stays without the plugin. In a resize of another resource, an old kubelet sends back what the
// runtime's status shows, which is the plugin's.
func TestResizeToThePluginsValue(t *testing.T) {
	const plugins = 100_000
	for _, test := range []struct {
		name    string
		update  *runtimeapi.LinuxContainerResources
		without int64 // the quota in the end
	}{
		{"the quota alone", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000}, plugins},
		{"quota and shares, beside the memory as it was", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000, CpuShares: 2048, MemoryLimitInBytes: fullResources().MemoryLimitInBytes}, plugins},
		{"the memory, with the status's quota", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000, MemoryLimitInBytes: 1 << 29}, 50_000},
		{"oom_score_adj with the memory, and the status's quota", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, MemoryLimitInBytes: 1 << 29, OomScoreAdj: 7}, 50_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs, _, _ := scratchGroup(t)
			n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
			n.runPod()
			n.begin()
			n.must(n.updateC1(test.update))
			if sent := decodeSent[runtimeapi.UpdateContainerResourcesRequest](n); sent.GetLinux().GetCpuQuota() != plugins {
				t.Errorf("the runtime was sent %v", sent.GetLinux())
			}
			intercept.Withdraw(t.Context(), n.options, removed("10-doubling"))
			n.must(n.queue.Drain(t.Context()))
			quota := test.update.CpuQuota
			for _, u := range n.backend.updates {
				quota = u.GetLinux().GetCpuQuota()
			}
			if quota != test.without {
				t.Errorf("without the plugin the quota is %d, want %d", quota, test.without)
			}
			n.hasField("cpu_quota", "", "", "", "")
		})
	}
}

// kubelet's CPU manager may give a container the first CPU alone, also where a plugin has done so.
// What else the update names, from the runtime's status, stays the plugin's.
func TestResizeToTheFirstCPU(t *testing.T) {
	for _, plugins := range []string{"0", "0-1"} {
		n := newNode(t, nil)
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
		n.must(err)
		req := createRequest()
		req.Config.Linux.Resources.CpusetCpus = ""
		_, err = n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		n.must(err)
		n.begin()
		pins := n.with(withLedger(n.options.Ledger), on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return errors.Join(adj.SetText(abi.Container, abi.Resources+abi.CpusetCpus, plugins), adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 700))
		}))
		pins.must(pins.updateC1(&runtimeapi.LinuxContainerResources{}))
		pins.hasField("cpuset_cpus", "10-test", plugins, "", plugins)
		update := &runtimeapi.LinuxContainerResources{CpusetCpus: "0"}
		if plugins != "0" {
			update.CpuShares = 700
		}
		n.must(n.updateC1(update))
		n.hasField("cpuset_cpus", "", "", "", "")
		n.hasField("cpu_shares", "10-test", "700", "512", "700")
	}
}

// kubelet does not write a limit of the pod that the kernel has already. The pod's limit follows
// kubelet's of the container then.
func TestResizeToTheRaisedLimitOfThePod(t *testing.T) {
	n, pod := raising(t)
	m := n.with(withCgroups(n.options.Cgroups), doubling(abi.HookSetOf(abi.PreUpdateContainerResources), abi.AllCapabilities))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 100_000, CpuPeriod: 100_000}))
	m.must(m.queue.Drain(t.Context()))
	m.wantCPU(pod, "200000 100000", "after the resize")
	intercept.Withdraw(t.Context(), m.options, removed("10-doubling"))
	m.must(m.queue.Drain(t.Context()))
	m.wantCPU(pod, "100000 100000", "without the plugin")
}

// withSibling is raising with a second container, whose quota is kubelet's. The pod has 90 ms of
// kubelet's, and 50 ms more.
func withSibling(t *testing.T) (n *node, pod string) {
	n, pod = raising(t)
	put(t, pod, "cpu.max", "90000 100000")
	second := createRequest()
	second.Config.Metadata.Name, second.Config.Linux.Resources.CpuQuota = "second", 40_000
	n = n.with(withCgroups(n.options.Cgroups))
	_, err := n.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	intercept.Scan(t.Context(), n.options)
	n.wantCPU(pod, "140000 100000", "with two containers")
	return n, pod
}

func (n *node) resizeQuota(id string, quota int64) {
	n.t.Helper()
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}}
	_, err := n.call(n.t.Context(), "UpdateContainerResources", req, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	n.must(n.queue.Drain(n.t.Context()))
}

// kubelet may resize another container than the plugin's, or one while another has ended, or shrink
// one and have another grow. In each case here it wants the pod to have what it has.
func TestResizesToTheRaisedLimitOfThePod(t *testing.T) {
	for name, test := range map[string]struct {
		resize func(n *node, pod string)
		want   string
	}{
		"a sibling": {func(n *node, _ string) { n.resizeQuota("c2", 90_000) }, "190000 100000"},
		"while a sibling has ended": {func(n *node, _ string) {
			_, err := n.call(n.t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c2"}, &runtimeapi.StopContainerResponse{})
			n.must(err)
			n.resizeQuota("c1", 100_000)
		}, "140000 100000"},
		"one grows and one shrinks": {func(n *node, _ string) {
			n.resizeQuota("c2", 30_000)
			n.resizeQuota("c1", 110_000)
		}, "140000 100000"},
		"one grows after kubelet's write": {func(n *node, pod string) {
			put(n.t, pod, "cpu.max", "150000 100000")
			intercept.Scan(n.t.Context(), n.options)
			n.resizeQuota("c2", 100_000)
		}, "200000 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			n, pod := withSibling(t)
			test.resize(n, pod)
			n.wantCPU(pod, test.want, "after the resize")
		})
	}
}

// A limit of memory is in whole pages in the kernel.
func TestResizeOfMemoryThatIsNotWholePages(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "memory.max", "99999744")
	put(t, pod, "memory.current", "4096")
	doubling := on(abi.PreCreateContainer, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		limit, _ := ev.Int64(abi.Container, abi.Resources+abi.MemoryLimit)
		return adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, 2*limit)
	})
	doubling.Hooks = abi.HookSetOf(abi.PreCreateContainer, abi.PreUpdateContainerResources)
	n := newNode(t, []plugin.Member{doubling}, withCgroups(fs))
	config, c := podConfig(), createRequest()
	config.Linux.Overhead, c.Config.Linux.Resources.MemoryLimitInBytes = nil, 100_000_000
	n.runPodWith(config, c)
	n.begin()
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 200_000_000}))
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, pod, "memory.max"); got != "399999744" {
		t.Errorf("the pod has %s", got)
	}
}

// The plugin's limit may be that of a cgroup file.
func TestResizeToThePluginsFile(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	write := on(abi.PreCreateContainer, write(abi.Container, "cpu.max", "100000 100000"))
	write.Hooks = abi.HookSetOf(abi.PreCreateContainer, abi.PreUpdateContainerResources)
	n := newNode(t, []plugin.Member{write}, withCgroups(fs))
	config := podConfig()
	config.Linux.Overhead = nil
	n.runPodWith(config, createRequest())
	n.begin()
	n.wantCPU(pod, "100000 100000", "before the resize")
	n.resizeQuota("c1", 100_000)
	n.wantCPU(pod, "100000 100000", "after the resize")
}

// A resize while plugins are being taken out is kubelet's as well.
func TestResizeToThePluginsValueInABypass(t *testing.T) {
	n, pod := raising(t)
	request, err := cri.NewFrame(&runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 100_000, CpuPeriod: 100_000}})
	n.must(err)
	_, err = intercept.PassUpdate(t.Context(), t.Context(), n.options, request, func(context.Context, *cri.Frame) (*cri.Frame, error) { return new(cri.Frame), nil })
	n.must(err)
	intercept.Withdraw(t.Context(), n.options, removed("10-doubling"))
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "100000 100000", "in the bypass")
	if len(n.backend.updates) > 0 {
		t.Errorf("the quota is reset: %v", n.backend.updates)
	}
}

// So is one during which that begins.
func TestResizeToThePluginsFileThatIsCut(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	put(t, dir, "memory.max", "134217728")
	cut := intercept.NewCut()
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.max", "104857600"))}, withCgroups(fs), func(o *intercept.Options) { o.Cut = cut })
	n.runPod()
	n.begin()
	n.updating = cut.Begin
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 104_857_600}))
	intercept.Withdraw(t.Context(), n.options, removed("10-test"))
	if got := content(t, dir, "memory.max"); got != "104857600" {
		t.Errorf("without the plugin the container has %s", got)
	}
}

// kubelet fills in UpdatePodSandboxResources from the kernel, which has the raised limit.
func TestUpdateOfThePodRepeatsTheRaisedLimit(t *testing.T) {
	n, pod := raising(t)
	for _, r := range []*runtimeapi.LinuxContainerResources{
		{CpuQuota: 50_000, CpuPeriod: 100_000}, {CpuQuota: 100_000, CpuPeriod: 100_000}, {CpuQuota: 100_000, CpuPeriod: 100_000, CpuShares: 7},
	} {
		_, err := n.call(t.Context(), "UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1", Resources: r}, &runtimeapi.UpdatePodSandboxResourcesResponse{})
		n.must(err)
		n.wantCPU(pod, "100000 100000", "after an update of the pod")
	}
}

// kubelet adds the overhead of a pod's runtime class to the limits of its containers.
func TestResizeToTheRaisedLimitOfAPodWithOverhead(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "cpu.max", "75000 100000")
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer, abi.PreUpdateContainerResources), abi.AllCapabilities)}, withCgroups(fs))
	config := podConfig()
	config.Linux.Overhead = &runtimeapi.LinuxContainerResources{CpuQuota: 25_000, CpuPeriod: 100_000}
	n.runPodWith(config, createRequest())
	n.begin()
	n.wantCPU(pod, "125000 100000", "before the resize")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 100_000, CpuPeriod: 100_000}))
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "225000 100000", "after the resize")
}
