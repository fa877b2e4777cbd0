package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// The events, one type for each hook. A type has the methods that its hook
// allows; what a hook cannot change does not compile.

// PreRunPodSandbox comes before a pod sandbox is made. kubelet has made the
// pod's cgroup by then.
type PreRunPodSandbox struct {
	Pod
	podFiles
	refusal
}

// SetLabel sets a label of the pod. Keys under io.kubernetes. are denied.
func (p *PreRunPodSandbox) SetLabel(key, value string) error {
	return setEntry("SetLabel", abi.Pod, abi.PodLabels, key, value)
}

// DeleteLabel removes a label of the pod, if it is there.
func (p *PreRunPodSandbox) DeleteLabel(key string) error {
	return deleteEntry("DeleteLabel", abi.Pod, abi.PodLabels, key)
}

// SetAnnotation sets an annotation of the pod. Keys under io.kubernetes. are denied.
func (p *PreRunPodSandbox) SetAnnotation(key, value string) error {
	return setEntry("SetAnnotation", abi.Pod, abi.PodAnnotations, key, value)
}

// DeleteAnnotation removes an annotation of the pod, if it is there.
func (p *PreRunPodSandbox) DeleteAnnotation(key string) error {
	return deleteEntry("DeleteAnnotation", abi.Pod, abi.PodAnnotations, key)
}

// SetCgroupParent sets the cgroup of the pod and of its later containers: an
// absolute path, or a systemd slice.
func (p *PreRunPodSandbox) SetCgroupParent(parent string) error {
	return setCgroupParent(parent)
}

// PostRunPodSandbox comes after a pod sandbox was made.
type PostRunPodSandbox struct {
	Pod
	podFiles
}

// PostStopPodSandbox comes after a pod sandbox was stopped.
type PostStopPodSandbox struct{ Pod }

// PreCreateContainer comes before a container is created.
type PreCreateContainer struct{ MutableContainer }

// SetEnv sets an environment variable. It replaces the last occurrence of the
// name and drops earlier ones; a new name comes last.
func (c *PreCreateContainer) SetEnv(name, value string) error {
	return setEntry("SetEnv", abi.Container, abi.ContainerEnv, name, value)
}

// DeleteEnv removes an environment variable, if it is there.
func (c *PreCreateContainer) DeleteEnv(name string) error {
	return deleteEntry("DeleteEnv", abi.Container, abi.ContainerEnv, name)
}

// SetCgroupParent sets the cgroup that the container's is made in: an absolute
// path, or a systemd slice.
func (c *PreCreateContainer) SetCgroupParent(parent string) error {
	return setCgroupParent(parent)
}

func setCgroupParent(parent string) error {
	return check("SetCgroupParent", "", hostSetBytes(abi.Pod, abi.PodCgroupParent, parent))
}

// PostCreateContainer comes after a container was created.
type PostCreateContainer struct {
	Container
	containerFiles
}

// PreStartContainer comes before a container is started.
type PreStartContainer struct {
	Container
	containerFiles
	refusal
}

// PostStartContainer comes after a container was started.
type PostStartContainer struct {
	Container
	containerFiles
}

// PreUpdateContainerResources comes before a container's resources are changed.
// Its getters show what the container has, with the request laid over it; what is
// set goes into the request.
type PreUpdateContainerResources struct{ MutableContainer }

// PostUpdateContainerResources comes after a container's resources were changed.
type PostUpdateContainerResources struct {
	Container
	containerFiles
}

// PostStopContainer comes after a container was stopped.
type PostStopContainer struct{ Container }

// PostRemoveContainer comes after a container was removed.
type PostRemoveContainer struct{ Container }
