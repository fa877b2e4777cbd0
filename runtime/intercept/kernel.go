package intercept

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Kernel is what the node's cgroups tell the store; nil without any.
func Kernel(fs *cgroup.FS) pods.Kernel {
	if fs == nil {
		return nil
	}
	return kernel{fs}
}

type kernel struct{ *cgroup.FS }

// Group implements pods.Kernel.
func (k kernel) Group(pid int, id string) (string, error) { return k.GroupOfProcess(pid, id) }

// Resources implements pods.Kernel.
func (k kernel) Resources(group string) (*runtimeapi.LinuxContainerResources, pods.Parts, error) {
	r, err := k.FS.Resources(group)
	res := &runtimeapi.LinuxContainerResources{
		CpuPeriod: r.CPUPeriod, CpuQuota: r.CPUQuota, CpuShares: r.CPUShares, MemoryLimitInBytes: r.MemoryLimit,
		MemorySwapLimitInBytes: r.MemorySwap, CpusetCpus: r.CpusetCPUs, CpusetMems: r.CpusetMems,
	}
	var parts pods.Parts
	for part, told := range map[pods.Parts]bool{
		pods.CPUPeriod: r.CPUPeriod != 0, pods.CPUQuota: r.CPUQuota != 0, pods.CPUShares: r.CPUShares != 0,
		pods.MemoryLimit: r.MemoryLimit != 0, pods.MemorySwap: r.MemorySwap != 0,
		pods.CpusetCPUs: r.CpusetCPUs != "", pods.CpusetMems: r.CpusetMems != "",
	} {
		if told {
			parts |= part
		}
	}
	return res, parts, err
}
