package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Level is the weight of a log line.
type Level int32

// The levels of Log.
const (
	LevelDebug Level = abi.LogDebug
	LevelInfo  Level = abi.LogInfo
	LevelWarn  Level = abi.LogWarn
	LevelError Level = abi.LogError
)

// Log writes a line to the proxy's log, which adds the plugin, the hook and the
// pod. Lines over the host's limit are dropped and counted. Environment
// variables may be secrets: do not log them.
func Log(level Level, message string) { hostLog(int32(level), message) }

// Config returns the plugin's configuration as the operator wrote it, "" if
// there is none.
func Config() string {
	return string(read("Config", "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostConfig(buf, size)
	}))
}

// Now returns the event's time in nanoseconds since the Unix epoch. It does not
// move while a handler runs.
func Now() int64 { return hostNow() }

// Abort ends the guest at once with a message, for a state that cannot be. The
// hook fails, and the proxy starts the next call with a fresh guest.
func Abort(reason string) {
	hostAbort(reason)
	panic(reason) // the host does not return
}

// CgroupVersion returns the version of the node's cgroup hierarchy, 1 or 2.
func CgroupVersion() int {
	return int(readInt64("CgroupVersion", abi.Node, abi.NodeCgroupVersion))
}

// RuntimeName returns the name of the container runtime behind the proxy, such
// as "containerd".
func RuntimeName() string { return readText("RuntimeName", abi.Node, abi.NodeRuntimeName) }

// RuntimeVersion returns the version of the container runtime behind the proxy.
func RuntimeVersion() string {
	return readText("RuntimeVersion", abi.Node, abi.NodeRuntimeVersion)
}

// FindPod finds the newest sandbox of a pod by its namespace and name.
func FindPod(namespace, name string) (Pod, bool) {
	return findPod("FindPod", abi.ByPodName, namespace+"/"+name)
}

// FindPodByID finds a pod by the id of its sandbox.
func FindPodByID(id string) (Pod, bool) { return findPod("FindPodByID", abi.ByPodID, id) }

// FindPodByUID finds the newest sandbox of a pod by the pod's uid.
func FindPodByUID(uid string) (Pod, bool) { return findPod("FindPodByUID", abi.ByPodUID, uid) }

// FindContainer finds a container by its id.
func FindContainer(id string) (Container, bool) {
	handle, ok := find("FindContainer", abi.ByContainerID, id)
	return Container{handle}, ok
}

func findPod(op string, kind int32, name string) (Pod, bool) {
	handle, ok := find(op, kind, name)
	return Pod{handle}, ok
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

func containers(pod abi.Object) []Container {
	list := string(read("Containers", "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostContainerList(pod, buf, size)
	}))
	var all []Container
	for len(list) >= 4 {
		var handle uint32
		handle, list = number(list)
		all = append(all, Container{abi.Object(handle)})
	}
	return all
}
