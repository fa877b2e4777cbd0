package faults_test

import "github.com/wasmproxy/wasmproxy/testdata/e2e/internal/tap"

// stage is a part of a pod's life.
type stage int

// The stages.
const (
	start stage = iota
	resize
	stop
	remove
)

// side is the relay that holds a call.
type side int

// The sides.
const (
	front side = iota // between kubelet and the proxy
	back              // between the proxy and the container runtime
)

// step is a moment of a pod's life, at which a call is held while a fault is made.
type step struct {
	name   string
	stage  stage
	side   side
	phase  tap.Phase
	method string
	means  string // for the table of results
}

// steps are in the order of a pod's life.
var steps = []step{
	{"sandbox-wanted", start, back, tap.Request, "RunPodSandbox", "pre hooks have run, and the runtime has not seen the call"},
	{"sandbox-made", start, back, tap.Answer, "RunPodSandbox", "the runtime has done it, and the proxy does not know"},
	{"container-wanted", start, back, tap.Request, "CreateContainer", "pre hooks have run, and the runtime has not seen the call"},
	{"container-made", start, back, tap.Answer, "CreateContainer", "the runtime has done it, and the proxy does not know"},
	{"start-wanted", start, back, tap.Request, "StartContainer", "pre hooks have run, and the runtime has not seen the call"},
	{"started", start, back, tap.Answer, "StartContainer", "the container runs, and the cgroup files of plugins are not written"},
	{"files-written", start, front, tap.Answer, "StartContainer", "the cgroup files are written, and kubelet does not know"},
	{"resize-wanted", resize, back, tap.Request, "UpdateContainerResources", "the burst is suspended, and the runtime has not seen the call"},
	{"resized", resize, back, tap.Answer, "UpdateContainerResources", "the runtime has done it, and the burst is not written again"},
	{"container-stopped", stop, back, tap.Answer, "StopContainer", "the runtime has done it, and the proxy does not know"},
	{"sandbox-stopped", stop, back, tap.Answer, "StopPodSandbox", "the runtime has done it, and the proxy does not know"},
	{"sandbox-removed", remove, back, tap.Answer, "RemovePodSandbox", "the runtime has done it, and the proxy does not know"},
}
