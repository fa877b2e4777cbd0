package intercept

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// podParts are the parts of a pod's config that fields show, but for overhead and
// resources.
var podParts = map[abi.Field]pods.Parts{
	abi.PodCgroupParent: pods.PodCgroupParent,
	abi.PodQoS:          pods.PodCgroupParent, // which shows it
	abi.PodHostname:     pods.PodHostname,
	abi.PodLogDirectory: pods.PodLogDirectory,
	abi.PodSysctls:      pods.PodSysctls,
	abi.PodPrivileged:   pods.PodPrivileged,
}

// containerParts are those of a container's config, but for resources.
var containerParts = map[abi.Field]pods.Parts{
	abi.ContainerEnv:                pods.Process,
	abi.ContainerCommand:            pods.Process,
	abi.ContainerWorkingDir:         pods.Process,
	abi.ContainerArgs:               pods.Args,
	abi.ContainerRunAsUser:          pods.User,
	abi.ContainerRunAsGroup:         pods.User,
	abi.ContainerRunAsUsername:      pods.User,
	abi.ContainerSupplementalGroups: pods.User,
	abi.ContainerPrivileged:         pods.Privileged,
	abi.ContainerReadonlyRootfs:     pods.ReadonlyRootfs,
	abi.ContainerDevices:            pods.Devices,
	abi.ContainerCDIDevices:         pods.Devices,
	abi.ContainerLogPath:            pods.LogPath,
	abi.Resources + abi.CPUPeriod:   pods.CPUPeriod,
	abi.Resources + abi.CPUQuota:    pods.CPUQuota,
	abi.Resources + abi.CPUShares:   pods.CPUShares,
	abi.Resources + abi.MemoryLimit: pods.MemoryLimit,
	abi.Resources + abi.MemorySwap:  pods.MemorySwap,
	abi.Resources + abi.OOMScoreAdj: pods.OOMScoreAdj,
	abi.Resources + abi.CpusetCpus:  pods.CpusetCPUs,
	abi.Resources + abi.CpusetMems:  pods.CpusetMems,

	abi.Resources + abi.HugepageLimits: pods.HugepageLimits,
	abi.Resources + abi.Unified:        pods.Unified,
}

func (p *podView) untoldField(f abi.Field) bool {
	switch {
	case p.untold == 0:
		return false
	case f >= abi.Resources:
		return p.untold&pods.PodResources != 0
	case f >= abi.Overhead:
		return p.untold&pods.PodOverhead != 0
	}
	return p.untold&podParts[f] != 0
}

func (c *containerView) untoldField(f abi.Field) bool {
	return c.untold != 0 && c.untold&containerParts[f] != 0
}

func (*Node) untoldField(abi.Field) bool { return false }
