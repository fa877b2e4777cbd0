package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// The events of pods, one type for each hook. A type has the methods that its hook
// allows; what a hook cannot change does not compile. hook_container.go has the
// events of containers, hook_image.go those of images.

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
// absolute path, or a systemd slice. It needs [CapCgroupParent].
func (p *PreRunPodSandbox) SetCgroupParent(parent string) error {
	return setCgroupParent(parent)
}

// SetRuntimeHandler sets the handler that makes the pod, "" for the runtime's
// default. It needs [CapRuntimeHandler].
func (p *PreRunPodSandbox) SetRuntimeHandler(handler string) error {
	return setText("SetRuntimeHandler", abi.Pod, abi.PodRuntimeHandler, handler)
}

func setCgroupParent(parent string) error {
	return setText("SetCgroupParent", abi.Pod, abi.PodCgroupParent, parent)
}

// PostRunPodSandbox comes after a pod sandbox was made.
type PostRunPodSandbox struct {
	Pod
	podFiles
}

// PreStopPodSandbox comes before a pod sandbox is stopped, which nothing can refuse.
type PreStopPodSandbox struct{ Pod }

// PostStopPodSandbox comes after a pod sandbox was stopped.
type PostStopPodSandbox struct{ Pod }

// PreRemovePodSandbox comes before a pod sandbox is removed, which nothing can refuse.
type PreRemovePodSandbox struct{ Pod }

// PostRemovePodSandbox comes after a pod sandbox was removed.
type PostRemovePodSandbox struct{ Pod }

// PreUpdatePodSandboxResources comes before the runtime gets new sums of a
// pod's resources. What is set goes into the request.
type PreUpdatePodSandboxResources struct {
	Pod
	refusal
}

// Overhead returns what the pod's sandbox itself is to cost.
func (p *PreUpdatePodSandboxResources) Overhead() MutableResources {
	return MutableResources{p.Pod.Overhead()}
}

// Resources returns what the sum of the pod's containers is to be.
func (p *PreUpdatePodSandboxResources) Resources() MutableResources {
	return MutableResources{p.Pod.Resources()}
}

// PostUpdatePodSandboxResources comes after the runtime was told of new sums of a
// pod's resources.
type PostUpdatePodSandboxResources struct{ Pod }

// PrePortForward comes before a stream to ports of a pod is opened.
type PrePortForward struct {
	Pod
	forwarded
	refusal
}

// PostPortForward comes after the address of a stream to ports of a pod was given out.
type PostPortForward struct {
	Pod
	forwarded
}

// PreCheckpointPod comes before a pod is checkpointed.
type PreCheckpointPod struct {
	Pod
	archive
	refusal
}

// PostCheckpointPod comes after a pod was checkpointed.
type PostCheckpointPod struct {
	Pod
	archive
}

// PreRestorePod comes before a pod is restored from a checkpoint. The pod is the
// one that the request's configuration describes.
type PreRestorePod struct {
	Pod
	archive
	refusal
}

// PostRestorePod comes after a pod was restored from a checkpoint.
type PostRestorePod struct {
	Pod
	archive
}

// Synchronize comes for each pod that the plugin has missed the beginning of, or that has a
// container of which it has, before any other event of these: when the plugin is loaded, and when the proxy
// finds one that it did not know. After a change of the plugin's files it comes for all pods.
type Synchronize struct {
	Pod
	podFiles
}

// Tick comes at the period of [Registration.OnTick], one at a time. It is about no
// pod: [Pods] finds them.
type Tick struct{}

// forwarded is what a hook of PortForward embeds.
type forwarded struct{}

// Ports returns the ports of the pod, in decimal.
func (forwarded) Ports() []string { return readList("Ports", abi.Event, abi.EventPorts) }

// archive is what a hook of checkpoints embeds.
type archive struct{}

// Location returns the file or directory that the checkpoint is written to or read from.
func (archive) Location() string { return readText("Location", abi.Event, abi.EventLocation) }
