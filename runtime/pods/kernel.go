package pods

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// A Kernel tells of a running container what a runtime may leave out.
type Kernel interface {
	// Group returns the cgroup that a container's process is in.
	Group(pid int, id string) (string, error)
	// Resources returns what a cgroup allows, as far as its files tell, and the parts
	// of a config that this is.
	Resources(group string) (*runtimeapi.LinuxContainerResources, Parts, error)
}

// Parts is a set of parts of a pod's or a container's config.
type Parts uint32

// The parts that a runtime may leave out of what it tells of a pod.
const (
	PodCgroupParent Parts = 1 << iota
	PodOverhead
	PodResources
	PodLogDirectory
	PodHostname
	PodSysctls
	PodPrivileged

	allOfPod = 1<<iota - 1
)

// The parts that a runtime may leave out of what it tells of a container.
const (
	Process Parts = 1 << iota // environment, command, working directory
	Args
	User // and the groups
	Privileged
	ReadonlyRootfs
	Devices
	LogPath
	CPUPeriod
	CPUQuota
	CPUShares
	MemoryLimit
	MemorySwap
	OOMScoreAdj
	CpusetCPUs
	CpusetMems
	HugepageLimits
	Unified

	allOfContainer = 1<<iota - 1
	allResources   = allOfContainer &^ (CPUPeriod - 1)
)

// askKernel asks where a container's process is, and, if the runtime did not tell,
// what the container is allowed. A pid of a container that does not run is another
// process's by now.
func (s *Store) askKernel(t *toldContainer) {
	alive := t.State == runtimeapi.ContainerState_CONTAINER_CREATED || t.State == runtimeapi.ContainerState_CONTAINER_RUNNING
	if s.kernel == nil || t.pid <= 0 || !alive {
		return
	}
	group, err := s.kernel.Group(t.pid, t.ID)
	if err != nil {
		return // another pid namespace than the runtime's: what it reports has to do
	}
	t.CgroupsPath = group
	if t.now != nil || t.Untold&allResources == 0 {
		return
	}
	if res, parts, err := s.kernel.Resources(group); err == nil {
		t.ofKernel, t.kernelTells = res, parts
	}
}
