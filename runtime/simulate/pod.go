package simulate

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
)

// containerFixture is a container of an event, with the requests of its life.
type containerFixture struct {
	id, state string // state as the ABI has it; "" is what the hook finds
	create    *runtimeapi.CreateContainerRequest
	update    *runtimeapi.UpdateContainerResourcesRequest
}

// podFixture is a pod with its containers.
type podFixture struct {
	id, state  string
	run        *runtimeapi.RunPodSandboxRequest
	resize     *runtimeapi.UpdatePodSandboxResourcesRequest
	containers []*containerFixture
}

// earlier returns the calls by which the pod and these containers came to be.
func (p *podFixture) earlier(containers []*containerFixture) []Call {
	calls := []Call{newCall(p.run).answer(p.id, "")}
	for _, a := range containers {
		calls = append(calls, newCall(a.create).answer("", a.id))
		if state := cmp.Or(a.state, "running"); state != "created" {
			calls = append(calls, newCall(&runtimeapi.StartContainerRequest{ContainerId: a.id}))
			if state == "exited" {
				calls = append(calls, newCall(&runtimeapi.StopContainerRequest{ContainerId: a.id}))
			}
		}
	}
	if p.state == "notready" {
		calls = append(calls, newCall(&runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id}))
	}
	return calls
}

// event tells of the pod, or of its container a, which is the first in the list or nil.
func (p *podFixture) event(hook abi.Hook, a *containerFixture, about fixture.Fields) *Event {
	e := &Event{Hook: hook, Call: p.call(hook, a, about)}
	before := p.containers
	switch e.Call.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest, *runtimeapi.RestorePodRequest, *runtimeapi.PullImageRequest, *runtimeapi.RemoveImageRequest:
		return e
	case *runtimeapi.CreateContainerRequest:
		before = without(before, a)
	case *runtimeapi.StartContainerRequest:
		if a != nil {
			a.state = cmp.Or(a.state, "created")
		}
	}
	e.Before = p.earlier(before)
	return e
}

func without(list []*containerFixture, a *containerFixture) []*containerFixture {
	var rest []*containerFixture
	for _, other := range list {
		if other != a {
			rest = append(rest, other)
		}
	}
	return rest
}

// call makes the call of the hook, the zero Call if it is none'p.
func (p *podFixture) call(hook abi.Hook, a *containerFixture, about fixture.Fields) Call {
	f := values{about}
	if a == nil { // whose id nobody knows
		a = &containerFixture{create: &runtimeapi.CreateContainerRequest{}, update: &runtimeapi.UpdateContainerResourcesRequest{}}
	}
	request := p.request(hook.Info().Method, a, f)
	if request == nil {
		return Call{}
	}
	c := newCall(request).answer(p.id, a.id)
	switch r := c.Response.(type) {
	case *runtimeapi.ExecSyncResponse:
		r.ExitCode = int32(f.number("exit_code"))
	case *runtimeapi.PullImageResponse:
		r.ImageRef = f.text("image_ref")
	}
	return c
}

func (p *podFixture) request(method string, a *containerFixture, f values) proto.Message {
	switch method {
	case "RunPodSandbox":
		return p.run
	case "StopPodSandbox":
		return &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id}
	case "RemovePodSandbox":
		return &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id}
	case "UpdatePodSandboxResources":
		return p.resize
	case "PortForward":
		return &runtimeapi.PortForwardRequest{PodSandboxId: p.id, Port: f.ports()}
	case "CheckpointPod":
		return &runtimeapi.CheckpointPodRequest{PodSandboxId: p.id, OutputPath: f.text("location")}
	case "RestorePod":
		return &runtimeapi.RestorePodRequest{Config: p.run.GetConfig(), RuntimeHandler: p.run.GetRuntimeHandler(), CheckpointPath: f.text("location")}
	case "PullImage":
		return &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: cmp.Or(f.text("image"), a.create.GetConfig().GetImage().GetImage())}, SandboxConfig: p.run.GetConfig()}
	case "RemoveImage":
		return &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: cmp.Or(f.text("image"), a.create.GetConfig().GetImage().GetImage())}}
	}
	return a.request(method, f)
}

func (c *containerFixture) request(method string, f values) proto.Message {
	switch method {
	case "CreateContainer":
		return c.create
	case "StartContainer":
		return &runtimeapi.StartContainerRequest{ContainerId: c.id}
	case "StopContainer":
		return &runtimeapi.StopContainerRequest{ContainerId: c.id, Timeout: f.number("timeout")}
	case "RemoveContainer":
		return &runtimeapi.RemoveContainerRequest{ContainerId: c.id}
	case "UpdateContainerResources":
		return c.update
	case "Exec":
		return &runtimeapi.ExecRequest{ContainerId: c.id, Cmd: f.list("command"), Tty: f.number("tty") != 0, Stdin: f.number("stdin") != 0, Stdout: true}
	case "ExecSync":
		return &runtimeapi.ExecSyncRequest{ContainerId: c.id, Cmd: f.list("command"), Timeout: f.number("timeout")}
	case "Attach":
		return &runtimeapi.AttachRequest{ContainerId: c.id, Tty: f.number("tty") != 0, Stdin: f.number("stdin") != 0, Stdout: true}
	case "CheckpointContainer":
		return &runtimeapi.CheckpointContainerRequest{ContainerId: c.id, Location: f.text("location"), Timeout: f.number("timeout")}
	}
	return nil
}

// DefaultNode is a node as there are many.
func DefaultNode(cgroupVersion int) crifield.Node {
	return crifield.Node{
		CgroupVersion: cgroupVersion, CgroupDriver: "cgroupfs", RuntimeName: "containerd", RuntimeVersion: "v2.2.0",
		RuntimeHandlers: []string{"", "runc"}, CPUs: 4, Memory: 16 << 30, Kernel: "6.12.0",
	}
}
