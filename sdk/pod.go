package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Pod reads a pod sandbox. Its methods return "" or 0 for what the pod does not
// have. A Pod is valid while the handler that got it runs.
type Pod struct{ from abi.Object } // counted from the pod of the event

func (p Pod) object() abi.Object { return abi.Pod + p.from }

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

// State returns "ready" or "notready".
func (p Pod) State() string { return readText("State", p.object(), abi.PodState) }

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

// Sysctl returns the value of a sysctl and whether the pod sets it.
func (p Pod) Sysctl(name string) (string, bool) {
	return readEntry("Sysctl", p.object(), abi.PodSysctls, name)
}

// Sysctls ranges over the sysctls that the pod sets, sorted by name.
func (p Pod) Sysctls() Entries { return readEntries("Sysctls", p.object(), abi.PodSysctls) }

// LogDirectory returns the host's directory of the containers' logs.
func (p Pod) LogDirectory() string {
	return readText("LogDirectory", p.object(), abi.PodLogDirectory)
}

// NetworkNamespace returns whose network the pod has: pod, container, node or target.
func (p Pod) NetworkNamespace() string {
	return readText("NetworkNamespace", p.object(), abi.PodNetworkNamespace)
}

// PIDNamespace returns whose processes the containers see: pod, container, node or target.
func (p Pod) PIDNamespace() string {
	return readText("PIDNamespace", p.object(), abi.PodPIDNamespace)
}

// IPCNamespace returns whose IPC the containers have: pod, container, node or target.
func (p Pod) IPCNamespace() string {
	return readText("IPCNamespace", p.object(), abi.PodIPCNamespace)
}

// UserNamespace returns whose users the pod has: pod, container, node or target.
func (p Pod) UserNamespace() string {
	return readText("UserNamespace", p.object(), abi.PodUserNamespace)
}

// Privileged tells whether the pod may hold privileged containers.
func (p Pod) Privileged() bool { return readInt64("Privileged", p.object(), abi.PodPrivileged) != 0 }

// Overhead returns what the pod's sandbox itself costs, by its RuntimeClass.
func (p Pod) Overhead() Resources { return Resources{p.object(), abi.Overhead} }

// Resources returns the sum of the resources of the pod's containers.
func (p Pod) Resources() Resources { return Resources{p.object(), abi.Resources} }

// ReadCgroup reads a file of the pod's cgroup by its v2 name, such as cpu.stat. It
// needs [CapCgroupRead]. A file that is not there is [ErrNotFound].
func (p Pod) ReadCgroup(file string) (string, error) { return readCgroup(p.object(), file) }

// Containers returns the containers of the pod that the proxy knows, sorted by id.
func (p Pod) Containers() []FoundContainer { return containers(p.object()) }
