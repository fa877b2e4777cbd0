package rehearsal

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
)

// actor is a container of an event, with the requests of its life.
type actor struct {
	id, state string // state as the ABI has it; "" is what the hook finds
	create    *runtimeapi.CreateContainerRequest
	update    *runtimeapi.UpdateContainerResourcesRequest
}

// stage is a pod with its containers.
type stage struct {
	id, state  string
	run        *runtimeapi.RunPodSandboxRequest
	resize     *runtimeapi.UpdatePodSandboxResourcesRequest
	containers []*actor
}

// earlier returns the calls by which the pod and these containers came to be.
func (s *stage) earlier(containers []*actor) []Call {
	calls := []Call{newCall(s.run).answer(s.id, "")}
	for _, a := range containers {
		calls = append(calls, newCall(a.create).answer("", a.id))
		if state := cmp.Or(a.state, "running"); state != "created" {
			calls = append(calls, newCall(&runtimeapi.StartContainerRequest{ContainerId: a.id}))
			if state == "exited" {
				calls = append(calls, newCall(&runtimeapi.StopContainerRequest{ContainerId: a.id}))
			}
		}
	}
	if s.state == "notready" {
		calls = append(calls, newCall(&runtimeapi.StopPodSandboxRequest{PodSandboxId: s.id}))
	}
	return calls
}

// event tells of the pod, or of its container a, which is the first in the list or nil.
func (s *stage) event(hook abi.Hook, a *actor, about fixture.Fields) *Event {
	e := &Event{Hook: hook, Call: s.call(hook, a, about)}
	before := s.containers
	switch e.Call.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest, *runtimeapi.RestorePodRequest, *runtimeapi.PullImageRequest, *runtimeapi.RemoveImageRequest:
		return e
	case *runtimeapi.CreateContainerRequest:
		before = without(before, a)
	case *runtimeapi.StartContainerRequest:
		if a != nil {
			a.state = "created"
		}
	}
	e.Before = s.earlier(before)
	return e
}

func without(list []*actor, a *actor) []*actor {
	var rest []*actor
	for _, other := range list {
		if other != a {
			rest = append(rest, other)
		}
	}
	return rest
}

// call makes the call of the hook, the zero Call if it is none's.
func (s *stage) call(hook abi.Hook, a *actor, about fixture.Fields) Call {
	f := values{about}
	if a == nil { // whose id nobody knows
		a = &actor{create: &runtimeapi.CreateContainerRequest{}, update: &runtimeapi.UpdateContainerResourcesRequest{}}
	}
	request := s.request(hook.Info().Method, a, f)
	if request == nil {
		return Call{}
	}
	c := newCall(request).answer(s.id, a.id)
	switch r := c.Response.(type) {
	case *runtimeapi.ExecSyncResponse:
		r.ExitCode = int32(f.number("exit_code"))
	case *runtimeapi.PullImageResponse:
		r.ImageRef = f.text("image_ref")
	}
	return c
}

func (s *stage) request(method string, a *actor, f values) proto.Message {
	switch method {
	case "RunPodSandbox":
		return s.run
	case "StopPodSandbox":
		return &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.id}
	case "RemovePodSandbox":
		return &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.id}
	case "UpdatePodSandboxResources":
		return s.resize
	case "PortForward":
		return &runtimeapi.PortForwardRequest{PodSandboxId: s.id, Port: f.ports()}
	case "CheckpointPod":
		return &runtimeapi.CheckpointPodRequest{PodSandboxId: s.id, OutputPath: f.text("location")}
	case "RestorePod":
		return &runtimeapi.RestorePodRequest{Config: s.run.GetConfig(), RuntimeHandler: s.run.GetRuntimeHandler(), CheckpointPath: f.text("location")}
	case "PullImage":
		return &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: cmp.Or(f.text("image"), a.create.GetConfig().GetImage().GetImage())}, SandboxConfig: s.run.GetConfig()}
	case "RemoveImage":
		return &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: cmp.Or(f.text("image"), a.create.GetConfig().GetImage().GetImage())}}
	}
	return a.request(method, f)
}

func (a *actor) request(method string, f values) proto.Message {
	switch method {
	case "CreateContainer":
		return a.create
	case "StartContainer":
		return &runtimeapi.StartContainerRequest{ContainerId: a.id}
	case "StopContainer":
		return &runtimeapi.StopContainerRequest{ContainerId: a.id, Timeout: f.number("timeout")}
	case "RemoveContainer":
		return &runtimeapi.RemoveContainerRequest{ContainerId: a.id}
	case "UpdateContainerResources":
		return a.update
	case "Exec":
		return &runtimeapi.ExecRequest{ContainerId: a.id, Cmd: f.list("command"), Tty: f.number("tty") != 0, Stdin: f.number("stdin") != 0, Stdout: true}
	case "ExecSync":
		return &runtimeapi.ExecSyncRequest{ContainerId: a.id, Cmd: f.list("command"), Timeout: f.number("timeout")}
	case "Attach":
		return &runtimeapi.AttachRequest{ContainerId: a.id, Tty: f.number("tty") != 0, Stdin: f.number("stdin") != 0, Stdout: true}
	case "CheckpointContainer":
		return &runtimeapi.CheckpointContainerRequest{ContainerId: a.id, Location: f.text("location"), Timeout: f.number("timeout")}
	}
	return nil
}

// DefaultNode is a node as there are many.
func DefaultNode(cgroupVersion int) intercept.Node {
	return intercept.Node{
		CgroupVersion: cgroupVersion, CgroupDriver: "cgroupfs", RuntimeName: "containerd", RuntimeVersion: "v2.2.0",
		RuntimeHandlers: []string{"", "runc"}, CPUs: 4, Memory: 16 << 30, Kernel: "6.12.0",
	}
}
