package enforce

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
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
	var told pods.Parts
	container := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: res}}}
	for f := range abi.MemorySwap + 1 {
		n, _ := container.Int64(abi.Resources + f)
		text, _ := container.Text(abi.Resources + f)
		if n != 0 || text != "" {
			told |= pods.PartOf(abi.Resources + f)
		}
	}
	return res, told, err
}
