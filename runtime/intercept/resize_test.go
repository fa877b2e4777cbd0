package intercept_test

import (
	"context"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// kubelet may resize a container to just the value that a plugin has set. That is kubelet's then,
// and stays without the plugin.
func TestResizeToThePluginsValue(t *testing.T) {
	const plugins = 100_000
	for _, test := range []struct {
		name    string
		update  *runtimeapi.LinuxContainerResources
		without int64 // the quota in the end
	}{
		{"the quota alone", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000}, plugins},
		{"quota and shares, beside the memory as it was", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000, CpuShares: 2048, MemoryLimitInBytes: fullResources().MemoryLimitInBytes}, plugins},
		{"the quota and the memory", &runtimeapi.LinuxContainerResources{CpuQuota: plugins, CpuPeriod: 100_000, MemoryLimitInBytes: 1 << 29}, plugins},
		{"the memory, with the quota as it was", &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000, MemoryLimitInBytes: 1 << 29}, 50_000},
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
			n.withdraw("10-doubling")
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

// A resize while plugins are being taken out is kubelet's as well.
func TestResizeToThePluginsValueInABypass(t *testing.T) {
	n, _ := raising(t)
	request, err := cri.NewFrame(&runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 100_000, CpuPeriod: 100_000}})
	n.must(err)
	_, err = intercept.PassUpdate(t.Context(), t.Context(), &n.options.Enforcer, request, func(context.Context, *cri.Frame) (*cri.Frame, error) { return new(cri.Frame), nil })
	n.must(err)
	n.withdraw("10-doubling")
	n.must(n.queue.Drain(t.Context()))
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
	n.withdraw("10-test")
	if got := content(t, dir, "memory.max"); got != "104857600" {
		t.Errorf("without the plugin the container has %s", got)
	}
}
