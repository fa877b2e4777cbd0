package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Pod reads a pod sandbox. Its methods return "" or 0 for what the pod does not
// have. A Pod is valid while the handler that got it runs.
type Pod struct{ from abi.Object } // counted from the pod of the event

func (p Pod) object() abi.Object { return abi.Pod + p.from }

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

// Overhead returns what the pod's sandbox itself costs, by its RuntimeClass.
func (p Pod) Overhead() Resources { return Resources{p.object(), abi.Overhead} }

// Resources returns the sum of the resources of the pod's containers.
func (p Pod) Resources() Resources { return Resources{p.object(), abi.Resources} }

// ReadCgroup reads a file of the pod's cgroup by its v2 name, such as cpu.stat. It needs
// [CapCgroupRead]. Without a cgroup the error is [ErrNotFound]; without the file it is [ErrUnsupported].
func (p Pod) ReadCgroup(file string) (string, error) { return readCgroup(p.object(), file) }

// ReadQoSCgroup reads a file of the cgroup of the pod's QoS class by its v2 name, such as
// memory.min. The class is the parent of the pod's cgroup, and belongs to kubelet: no plugin
// writes it. It needs [CapCgroupRead]. For a pod outside kubelet's cgroups it is [ErrNotFound].
func (p Pod) ReadQoSCgroup(file string) (string, error) {
	return readCgroup(abi.QOSClass+p.object(), file)
}

// Containers returns the containers of the pod that the proxy knows, sorted by id.
func (p Pod) Containers() []FoundContainer { return containers(p.object()) }
