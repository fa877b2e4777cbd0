package pods

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A Kernel reports of a running container what a runtime may leave out.
type Kernel interface {
	// Group returns the cgroup that a container's process is in.
	Group(pid int, id string) (string, error)
	// Resources returns what a cgroup allows, as far as its files say, and the parts
	// of a config that these are.
	Resources(group string) (*runtimeapi.LinuxContainerResources, Parts, error)
}

// Parts is a set of fields of a pod's or a container's config. See [PartOf].
type Parts uint64

// PartOf returns the part that a field is: its overhead is one part of a pod, and what it may do one part of a container.
func PartOf(f abi.Field) Parts {
	switch {
	case f >= abi.Resources:
		return firstResource << (f - abi.Resources)
	case f >= abi.Overhead:
		return PodOverhead
	}
	return 1 << f
}

// unread marks a record of what a list told. A status replaces it.
const unread Parts = 1 << 63

// The parts that a runtime may leave out of its report of a pod.
const (
	PodCgroupParent Parts = 1<<abi.PodCgroupParent | 1<<abi.PodQoS // which is read off it
	PodOverhead     Parts = 1 << abi.Overhead
	firstResource   Parts = PodOverhead << 1
	allResources    Parts = firstResource<<(abi.MemorySwap+1) - firstResource

	notInPodSpec = 1<<abi.PodLogDirectory | 1<<abi.PodPrivileged | 1<<abi.PodPortMappings
	allOfPod     = notInPodSpec | PodCgroupParent | PodOverhead | allResources | 1<<abi.PodHostname | 1<<abi.PodSysctls
)

// The parts that a runtime may leave out of its report of a container.
const (
	confinement Parts = 1 << abi.ContainerAddCapabilities // and all that follow
	notInSpec   Parts = 1<<abi.ContainerArgs | 1<<abi.ContainerReadonlyRootfs | 1<<abi.ContainerLogPath |
		1<<abi.ContainerDevices | 1<<abi.ContainerCDIDevices | confinement |
		1<<abi.ContainerRunAsUser | 1<<abi.ContainerRunAsGroup | 1<<abi.ContainerRunAsUsername | 1<<abi.ContainerSupplementalGroups
	allOfContainer = notInSpec | allResources |
		1<<abi.ContainerEnv | 1<<abi.ContainerCommand | 1<<abi.ContainerWorkingDir | 1<<abi.ContainerPrivileged
)
