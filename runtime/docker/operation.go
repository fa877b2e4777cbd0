package docker

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// An operation is one of the Docker Engine API, by the name that its specification has.
type operation struct {
	name     string
	endless  bool // the answer ends when its caller likes; it is not waited for at shutdown
	attaches bool // dockerd takes over the connection for the streams of a process

	// Plugins are shown a request as calls of CRI, about the container that it makes or names:
	since     string                // the oldest version of the API that they are shown
	sandbox   string                // the method, if the container is a pod's sandbox; "": the request passes then
	container string                // the method, if it is another one
	when      func(url.Values) bool // which parameters make the request such a call; nil: all
	serve     func(*call)           // nil: it passes
}

// other is the name of a request that the table does not have.
var other = operation{name: "other"}

// operations are those of the Docker Engine API, by method and path. A * stands for what lies
// between the first and the last part of a path, or for all after the first: names have slashes.
// Those that plugins are shown come first.
var operations = map[string]operation{
	"POST containers/create":    {name: "ContainerCreate", since: "1.24", sandbox: "RunPodSandbox", container: "CreateContainer", serve: (*call).create},
	"POST containers/*/start":   {name: "ContainerStart", since: "1.24", container: "StartContainer", serve: (*call).serveExisting},
	"POST containers/*/restart": {name: "ContainerRestart", since: "1.24", container: "StartContainer", serve: (*call).serveExisting},
	"POST containers/*/stop":    {name: "ContainerStop", since: "1.24", sandbox: "StopPodSandbox", container: "StopContainer", serve: (*call).serveExisting},
	"POST containers/*/kill":    {name: "ContainerKill", since: "1.24", sandbox: "StopPodSandbox", container: "StopContainer", when: kills, serve: (*call).serveExisting},
	"POST containers/*/update":  {name: "ContainerUpdate", since: "1.24", container: "UpdateContainerResources", serve: (*call).update},
	"DELETE containers/*":       {name: "ContainerDelete", since: "1.24", sandbox: "RemovePodSandbox", container: "RemoveContainer", when: removes, serve: (*call).serveExisting},

	"GET containers/json": {name: "ContainerList"}, "GET containers/*/json": {name: "ContainerInspect"},
	"GET containers/*/top": {name: "ContainerTop"}, "GET containers/*/logs": {name: "ContainerLogs", endless: true}, "GET containers/*/changes": {name: "ContainerChanges"},
	"GET containers/*/export": {name: "ContainerExport"}, "GET containers/*/stats": {name: "ContainerStats", endless: true}, "POST containers/*/resize": {name: "ContainerResize"},
	"POST containers/*/rename": {name: "ContainerRename"}, "POST containers/*/pause": {name: "ContainerPause"}, "POST containers/*/unpause": {name: "ContainerUnpause"},
	"POST containers/*/attach": {name: "ContainerAttach", endless: true, attaches: true}, "GET containers/*/ws": {name: "ContainerAttachWebsocket", endless: true},
	"POST containers/*/wait": {name: "ContainerWait", endless: true}, "HEAD containers/*/archive": {name: "ContainerArchiveInfo"}, "GET containers/*/archive": {name: "ContainerArchive"}, "PUT containers/*/archive": {name: "PutContainerArchive"}, "POST containers/prune": {name: "ContainerPrune"}, "POST containers/*/exec": {name: "ContainerExec"},
	"POST exec/*/start": {name: "ExecStart", attaches: true}, "POST exec/*/resize": {name: "ExecResize"}, "GET exec/*/json": {name: "ExecInspect"},
	"GET images/json": {name: "ImageList"}, "POST build": {name: "ImageBuild"}, "POST build/prune": {name: "BuildPrune"}, "POST build/cancel": {name: "BuildCancel"},
	"POST images/create": {name: "ImageCreate"}, "GET images/*/json": {name: "ImageInspect"}, "GET images/*/history": {name: "ImageHistory"}, "POST images/*/push": {name: "ImagePush"},
	"POST images/*/tag": {name: "ImageTag"}, "DELETE images/*": {name: "ImageDelete"}, "GET images/search": {name: "ImageSearch"}, "POST images/prune": {name: "ImagePrune"},
	"POST commit": {name: "ImageCommit"}, "GET images/*/get": {name: "ImageGet"}, "GET images/get": {name: "ImageGetAll"}, "POST images/load": {name: "ImageLoad"},
	"POST auth": {name: "SystemAuth"}, "GET info": {name: "SystemInfo"}, "GET version": {name: "SystemVersion"}, "GET _ping": {name: "SystemPing"}, "HEAD _ping": {name: "SystemPingHead"},
	"GET events": {name: "SystemEvents", endless: true}, "GET system/df": {name: "SystemDataUsage"}, "POST session": {name: "Session"}, "POST grpc": {name: "Grpc"},
	"GET networks": {name: "NetworkList"}, "GET networks/*": {name: "NetworkInspect"}, "DELETE networks/*": {name: "NetworkDelete"}, "POST networks/create": {name: "NetworkCreate"},
	"POST networks/*/connect": {name: "NetworkConnect"}, "POST networks/*/disconnect": {name: "NetworkDisconnect"}, "POST networks/prune": {name: "NetworkPrune"},
	"GET volumes": {name: "VolumeList"}, "POST volumes/create": {name: "VolumeCreate"}, "GET volumes/*": {name: "VolumeInspect"}, "DELETE volumes/*": {name: "VolumeDelete"},
	"GET services/*/logs": {name: "ServiceLogs", endless: true}, "GET tasks/*/logs": {name: "TaskLogs", endless: true},
	"GET swarm": {name: "SwarmInspect"}, "GET nodes/*": {name: "NodeInspect"}, "GET services/*": {name: "ServiceInspect"}, "GET tasks/*": {name: "TaskInspect"},
	"GET secrets/*": {name: "SecretInspect"}, "GET configs/*": {name: "ConfigInspect"}, "GET plugins": {name: "PluginList"}, "GET plugins/*/json": {name: "PluginInspect"},
	"POST volumes/prune": {name: "VolumePrune"}, "GET distribution/*/json": {name: "DistributionInspect"},
}

// operationOf returns the operation of a request, the part of its path that names the container or
// other object, and the version of the API that it names, such as 1.41; "" where there is none.
func operationOf(r *http.Request) (op operation, object, version string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if number, ok := strings.CutPrefix(parts[0], "v"); ok && number != "" && len(parts) > 1 { // such as v1.41
		if strings.Trim(number, "0123456789.") == "" {
			version, parts = number, parts[1:]
		}
	}
	if op, ok := operations[r.Method+" "+strings.Join(parts, "/")]; ok && len(parts) < 3 {
		return op, "", version
	}
	pattern := r.Method + " " + parts[0] + "/*"
	if last := len(parts) - 1; last > 1 {
		if op, ok := operations[pattern+"/"+parts[last]]; ok {
			return op, strings.Join(parts[1:last], "/"), version
		}
	}
	if op, ok := operations[pattern]; ok {
		return op, strings.Join(parts[1:], "/"), version
	}
	return other, "", version
}

// numbersOf returns major and minor version, 0 for what is not a number, as Docker has it.
func numbersOf(version string) []int {
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return []int{major, minor}
}

// methods are the calls of CRI that a request can be.
func (op operation) methods() (all []*cri.Method) {
	for _, name := range []string{op.sandbox, op.container} {
		if name != "" {
			all = append(all, cri.MethodNamed(name))
		}
	}
	return all
}

// Methods returns the calls of CRI that are made of requests, some of them twice.
func Methods() (all []*cri.Method) {
	for _, op := range operations {
		all = append(all, op.methods()...)
	}
	return all
}

// UncalledHooks are the hooks for which there is no call in this mode.
func UncalledHooks() abi.HookSet {
	called := abi.HookSetOf(abi.Synchronize, abi.Tick)
	for _, m := range Methods() {
		called |= m.Hooks()
	}
	return ^called
}

// Shapes returns the names of all operations, for metrics. Of those whose answer has no end of its
// own the shape is that of a stream.
func Shapes() map[string]cri.Shape {
	shapes := map[string]cri.Shape{}
	for _, op := range operations {
		shapes[op.name] = cri.Unary
		if op.endless {
			shapes[op.name] = cri.Stream
		}
	}
	return shapes
}
