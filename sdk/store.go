package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// FoundPod is a pod that was looked up. What is set on it happens after the call
// that the event is about, and needs [CapUpdateOthers] besides. The pod of an event
// before a call is read-only here: the event itself changes it.
type FoundPod struct{ Pod }

// SetCgroup writes a file of the pod's cgroup, by its cgroup v2 name.
func (p FoundPod) SetCgroup(file, value string) error { return setCgroup(p.object(), file, value) }

// FoundContainer is a container that was looked up. What is set on it goes to the
// runtime after the call that the event is about, and needs [CapUpdateOthers]
// besides. The container of an event before a call is read-only here: the event
// itself changes it.
type FoundContainer struct{ Container }

// Pod returns the pod that the container is in.
func (c FoundContainer) Pod() FoundPod { return FoundPod{c.Container.Pod()} }

// Resources returns the container's resources, as they were last set.
func (c FoundContainer) Resources() MutableResources {
	return MutableResources{c.Container.Resources()}
}

// SetCgroup writes a file of the container's cgroup, by its cgroup v2 name.
func (c FoundContainer) SetCgroup(file, value string) error {
	return setCgroup(c.object(), file, value)
}

// FindPod finds the newest sandbox of a pod by its namespace and name. Looking
// anything up needs [CapStoreRead], and finds what the operator's match accepts, or all with [CapStoreReadAll].
func FindPod(namespace, name string) (FoundPod, bool) {
	return findPod("FindPod", abi.ByPodName, namespace+"/"+name)
}

// FindPodByID finds a pod by the id of its sandbox.
func FindPodByID(id string) (FoundPod, bool) { return findPod("FindPodByID", abi.ByPodID, id) }

// FindPodByUID finds the newest sandbox of a pod by the pod's uid.
func FindPodByUID(uid string) (FoundPod, bool) { return findPod("FindPodByUID", abi.ByPodUID, uid) }

// FindContainer finds a container by its id.
func FindContainer(id string) (FoundContainer, bool) {
	handle, ok := find("FindContainer", abi.ByContainerID, id)
	return FoundContainer{Container{handle - abi.Container}}, ok
}

// Pods returns the pods of a namespace that the proxy knows, of all if it is "",
// sorted by id.
func Pods(namespace string) []FoundPod {
	n := hostPodList(namespace, free, room)
	for ; n > room; n = hostPodList(namespace, free, room) {
		refill(n)
	}
	found := handles("Pods", namespace, n)
	pods := make([]FoundPod, len(found))
	for i, handle := range found {
		pods[i] = FoundPod{Pod{handle - abi.Pod}}
	}
	return pods
}

func findPod(op string, kind int32, name string) (FoundPod, bool) {
	handle, ok := find(op, kind, name)
	return FoundPod{Pod{handle - abi.Pod}}, ok
}

// nothing is an object that the host does not know, so that every field of it is absent.
const nothing abi.Object = -1

func find(op string, kind int32, name string) (abi.Object, bool) {
	n := hostPodFind(kind, name)
	if n < 0 {
		missing(op, name, n)
		return nothing, false
	}
	return abi.Object(n), true
}

// Containers returns all containers that the proxy knows, by pod.
func Containers() []FoundContainer { return containers(abi.Node) }

func containers(pod abi.Object) []FoundContainer {
	n := hostContainerList(pod, free, room)
	for ; n > room; n = hostContainerList(pod, free, room) {
		refill(n)
	}
	found := handles("Containers", "", n)
	all := make([]FoundContainer, len(found))
	for i, handle := range found {
		all[i] = FoundContainer{Container{handle - abi.Container}}
	}
	return all
}

func readCgroup(o abi.Object, file string) (string, error) {
	n := hostCgroupGet(o, file, free, room)
	for ; n > room; n = hostCgroupGet(o, file, free, room) {
		refill(n)
	}
	return cut(n), check("ReadCgroup", file, n)
}
