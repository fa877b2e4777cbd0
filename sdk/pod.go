package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Pod reads a pod sandbox. Its methods return "" or 0 for what the pod does not
// have. A Pod is valid while the handler that got it runs.
type Pod struct{ handle abi.Object } // 0 is the pod of the event

func (p Pod) object() abi.Object {
	if p.handle == 0 {
		return abi.Pod
	}
	return p.handle
}

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
func (p Pod) CgroupParent() string {
	return readText("CgroupParent", p.object(), abi.PodCgroupParent)
}

// Hostname returns the pod's host name.
func (p Pod) Hostname() string { return readText("Hostname", p.object(), abi.PodHostname) }

// Label returns the value of a label and whether the pod has it.
func (p Pod) Label(key string) (string, bool) {
	return readEntry("Label", p.object(), abi.PodLabels, key)
}

// Labels ranges over the labels, sorted by key.
func (p Pod) Labels() Entries { return readEntries("Labels", p.object(), abi.PodLabels) }

// Annotation returns the value of an annotation and whether the pod has it.
func (p Pod) Annotation(key string) (string, bool) {
	return readEntry("Annotation", p.object(), abi.PodAnnotations, key)
}

// Annotations ranges over the annotations, sorted by key.
func (p Pod) Annotations() Entries {
	return readEntries("Annotations", p.object(), abi.PodAnnotations)
}

// Overhead returns what the pod's sandbox itself costs, by its RuntimeClass.
func (p Pod) Overhead() Resources { return Resources{p.object(), abi.Overhead} }

// Resources returns the sum of the resources of the pod's containers.
func (p Pod) Resources() Resources { return Resources{p.object(), abi.Resources} }

// Containers returns the containers of the pod that the proxy knows, sorted by id.
func (p Pod) Containers() []Container { return containers(p.object()) }
