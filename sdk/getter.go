// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// ID returns the id of the pod's sandbox, "" before it is created.
func (p Pod) ID() string { return readText("ID", p.object(), abi.PodID) }

// Name returns the pod's name.
func (p Pod) Name() string { return readText("Name", p.object(), abi.PodName) }

// Namespace returns the pod's Kubernetes namespace.
func (p Pod) Namespace() string { return readText("Namespace", p.object(), abi.PodNamespace) }

// UID returns the pod's Kubernetes uid.
func (p Pod) UID() string { return readText("UID", p.object(), abi.PodUID) }

// Attempt returns how often the pod's sandbox was made before.
func (p Pod) Attempt() int64 { return readInt64("Attempt", p.object(), abi.PodAttempt) }

// RuntimeHandler returns the handler of the pod's RuntimeClass, "" for the default.
func (p Pod) RuntimeHandler() string {
	return readText("RuntimeHandler", p.object(), abi.PodRuntimeHandler)
}

// QoS returns the pod's Kubernetes QoS class: Guaranteed, Burstable or BestEffort.
func (p Pod) QoS() string { return readText("QoS", p.object(), abi.PodQoS) }

// CgroupParent returns the pod's cgroup as CRI names it: a path, or a systemd slice.
func (p Pod) CgroupParent() string { return readText("CgroupParent", p.object(), abi.PodCgroupParent) }

// Hostname returns the pod's host name.
func (p Pod) Hostname() string { return readText("Hostname", p.object(), abi.PodHostname) }

// State returns "ready" or "notready", "" before the pod is created.
func (p Pod) State() string { return readText("State", p.object(), abi.PodState) }

// LogDirectory returns the host's directory of the containers' logs.
func (p Pod) LogDirectory() string { return readText("LogDirectory", p.object(), abi.PodLogDirectory) }

// NetworkNamespace returns whose network the pod has: pod, container, node or target, as CRI's NamespaceMode.
func (p Pod) NetworkNamespace() string {
	return readText("NetworkNamespace", p.object(), abi.PodNetworkNamespace)
}

// PIDNamespace returns whose processes the containers see: pod, container, node or target.
func (p Pod) PIDNamespace() string { return readText("PIDNamespace", p.object(), abi.PodPIDNamespace) }

// IPCNamespace returns whose IPC the containers have: pod, container, node or target.
func (p Pod) IPCNamespace() string { return readText("IPCNamespace", p.object(), abi.PodIPCNamespace) }

// UserNamespace returns whose users the pod has: pod, container, node or target.
func (p Pod) UserNamespace() string {
	return readText("UserNamespace", p.object(), abi.PodUserNamespace)
}

// Privileged tells whether the pod may hold privileged containers.
func (p Pod) Privileged() bool { return readInt64("Privileged", p.object(), abi.PodPrivileged) != 0 }

// PortMappings returns the pod's ports, each as HOST_IP:HOST_PORT:CONTAINER_PORT/PROTOCOL.
func (p Pod) PortMappings() []string {
	return readList("PortMappings", p.object(), abi.PodPortMappings)
}

// ID returns the container's id, "" before it is created.
func (c Container) ID() string { return readText("ID", c.object(), abi.ContainerID) }

// Name returns the container's name in its pod.
func (c Container) Name() string { return readText("Name", c.object(), abi.ContainerName) }

// Attempt returns how often the container was created before.
func (c Container) Attempt() int64 { return readInt64("Attempt", c.object(), abi.ContainerAttempt) }

// Image returns the image as its user wrote it, "" if nobody told its name.
func (c Container) Image() string { return readText("Image", c.object(), abi.ContainerImage) }

// State returns "created", "running", "exited" or "unknown", "" before the container is created.
func (c Container) State() string { return readText("State", c.object(), abi.ContainerState) }

// Command returns the entrypoint, nothing for the image's.
func (c Container) Command() []string { return readList("Command", c.object(), abi.ContainerCommand) }

// Args returns the arguments, nothing for the image's.
func (c Container) Args() []string { return readList("Args", c.object(), abi.ContainerArgs) }

// WorkingDir returns the directory that the container starts in, "" for the image's.
func (c Container) WorkingDir() string {
	return readText("WorkingDir", c.object(), abi.ContainerWorkingDir)
}

// RunAsUsername returns the user's name, if the request gives it.
func (c Container) RunAsUsername() string {
	return readText("RunAsUsername", c.object(), abi.ContainerRunAsUsername)
}

// Privileged tells whether the container is privileged.
func (c Container) Privileged() bool {
	return readInt64("Privileged", c.object(), abi.ContainerPrivileged) != 0
}

// ReadonlyRootfs tells whether the container cannot write to its root.
func (c Container) ReadonlyRootfs() bool {
	return readInt64("ReadonlyRootfs", c.object(), abi.ContainerReadonlyRootfs) != 0
}

// LogPath returns the container's log, relative to the pod's directory.
func (c Container) LogPath() string { return readText("LogPath", c.object(), abi.ContainerLogPath) }

// ImageID returns the image's id as the request has it, "" if it has the name alone.
func (c Container) ImageID() string { return readText("ImageID", c.object(), abi.ContainerImageID) }

// ImageRepoDigests returns the image in the registries that it was pulled from: registry/repository@digest.
func (c Container) ImageRepoDigests() []string {
	return readList("ImageRepoDigests", c.object(), abi.ContainerImageRepoDigests)
}

// AddCapabilities returns the Linux capabilities that the container gets beside the usual ones, such as NET_ADMIN; ALL is all.
func (c Container) AddCapabilities() []string {
	return readList("AddCapabilities", c.object(), abi.ContainerAddCapabilities)
}

// DropCapabilities returns the usual Linux capabilities that the container does not get, such as NET_RAW; ALL is all.
func (c Container) DropCapabilities() []string {
	return readList("DropCapabilities", c.object(), abi.ContainerDropCapabilities)
}

// AddAmbientCapabilities returns the ambient Linux capabilities that the container gets.
func (c Container) AddAmbientCapabilities() []string {
	return readList("AddAmbientCapabilities", c.object(), abi.ContainerAddAmbientCapabilities)
}

// NoNewPrivs tells whether no program of the container can gain privileges, such as by setuid.
func (c Container) NoNewPrivs() bool {
	return readInt64("NoNewPrivs", c.object(), abi.ContainerNoNewPrivs) != 0
}

// Seccomp returns the seccomp profile: runtime/default, unconfined or localhost/FILE, "" if nobody says.
func (c Container) Seccomp() string { return readText("Seccomp", c.object(), abi.ContainerSeccomp) }

// Apparmor returns the AppArmor profile: runtime/default, unconfined or localhost/NAME, "" if nobody says.
func (c Container) Apparmor() string { return readText("Apparmor", c.object(), abi.ContainerApparmor) }

// CgroupVersion returns the version of the node's cgroup hierarchy, 1 or 2.
func (NodeObject) CgroupVersion() int64 {
	return readInt64("CgroupVersion", abi.Node, abi.NodeCgroupVersion)
}

// RuntimeName returns the name of the container runtime behind the proxy, such as "containerd".
func (NodeObject) RuntimeName() string { return readText("RuntimeName", abi.Node, abi.NodeRuntimeName) }

// RuntimeVersion returns the version of the container runtime behind the proxy.
func (NodeObject) RuntimeVersion() string {
	return readText("RuntimeVersion", abi.Node, abi.NodeRuntimeVersion)
}

// CgroupDriver returns "systemd" or "cgroupfs", "" where the runtime does not say.
func (NodeObject) CgroupDriver() string {
	return readText("CgroupDriver", abi.Node, abi.NodeCgroupDriver)
}

// CPUs returns how many CPUs of the node are online.
func (NodeObject) CPUs() int64 { return readInt64("CPUs", abi.Node, abi.NodeCPUs) }

// Memory returns the node's memory in bytes.
func (NodeObject) Memory() int64 { return readInt64("Memory", abi.Node, abi.NodeMemory) }

// Kernel returns the release of the node's kernel, as uname -r has it.
func (NodeObject) Kernel() string { return readText("Kernel", abi.Node, abi.NodeKernel) }

// RuntimeHandlers returns the handlers that the container runtime has.
func (NodeObject) RuntimeHandlers() []string {
	return readList("RuntimeHandlers", abi.Node, abi.NodeRuntimeHandlers)
}

// CPUPeriod returns the CFS period in microseconds, 1000–1000000.
func (r Resources) CPUPeriod() int64 { return r.number("CPUPeriod", abi.CPUPeriod) }

// CPUQuota returns the CFS quota in microseconds per period, -1 for no limit.
func (r Resources) CPUQuota() int64 { return r.number("CPUQuota", abi.CPUQuota) }

// CPUShares returns the relative weight, 2–262144, whatever the cgroup version.
func (r Resources) CPUShares() int64 { return r.number("CPUShares", abi.CPUShares) }

// MemoryLimit returns the memory limit in bytes.
func (r Resources) MemoryLimit() int64 { return r.number("MemoryLimit", abi.MemoryLimit) }

// OOMScoreAdj returns the adjustment of the OOM killer's score, -1000–1000.
func (r Resources) OOMScoreAdj() int64 { return r.number("OOMScoreAdj", abi.OOMScoreAdj) }

// CpusetCPUs returns the CPUs that may be used, such as "0-3,7".
func (r Resources) CpusetCPUs() string { return r.text("CpusetCPUs", abi.CpusetCpus) }

// CpusetMems returns the memory nodes that may be used, such as "0-1".
func (r Resources) CpusetMems() string { return r.text("CpusetMems", abi.CpusetMems) }

// MemorySwap returns the limit of memory plus swap in bytes.
func (r Resources) MemorySwap() int64 { return r.number("MemorySwap", abi.MemorySwap) }

// SetCPUPeriod sets the CFS period in microseconds, 1000–1000000.
func (r MutableResources) SetCPUPeriod(us int64) error {
	return r.setNumber("SetCPUPeriod", abi.CPUPeriod, us)
}

// SetCPUQuota sets the CFS quota in microseconds per period, -1 for no limit.
func (r MutableResources) SetCPUQuota(us int64) error {
	return r.setNumber("SetCPUQuota", abi.CPUQuota, us)
}

// SetCPUShares sets the relative weight, 2–262144, whatever the cgroup version.
func (r MutableResources) SetCPUShares(shares int64) error {
	return r.setNumber("SetCPUShares", abi.CPUShares, shares)
}

// SetMemoryLimit sets the memory limit in bytes.
func (r MutableResources) SetMemoryLimit(bytes int64) error {
	return r.setNumber("SetMemoryLimit", abi.MemoryLimit, bytes)
}

// SetOOMScoreAdj sets the adjustment of the OOM killer's score, -1000–1000.
func (r MutableResources) SetOOMScoreAdj(score int64) error {
	return r.setNumber("SetOOMScoreAdj", abi.OOMScoreAdj, score)
}

// SetCpusetCPUs sets the CPUs that may be used, such as "0-3,7".
func (r MutableResources) SetCpusetCPUs(list string) error {
	return r.setText("SetCpusetCPUs", abi.CpusetCpus, list)
}

// SetCpusetMems sets the memory nodes that may be used, such as "0-1".
func (r MutableResources) SetCpusetMems(list string) error {
	return r.setText("SetCpusetMems", abi.CpusetMems, list)
}

// SetMemorySwap sets the limit of memory plus swap in bytes.
func (r MutableResources) SetMemorySwap(bytes int64) error {
	return r.setNumber("SetMemorySwap", abi.MemorySwap, bytes)
}
