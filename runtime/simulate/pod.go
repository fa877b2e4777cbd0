package simulate

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
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

// call makes the call of the hook with what the event says of it, the zero Call if the
// hook is apart from calls. c may be nil: its id is not known then.
func (p *podFixture) call(hook abi.Hook, c *containerFixture, about fixture.Fields) Call {
	method, ok := methodOf(hook)
	if !ok {
		return Call{}
	}
	if c == nil {
		c = &containerFixture{}
	}
	call := Call{method, p.request(method, c), method.NewResponse()}.answer(p.id, c.id)
	set(crifield.Object{Event: messages{call}}, abi.Event, about)
	return call
}

func (p *podFixture) request(method cri.Method, c *containerFixture) proto.Message {
	image := &runtimeapi.ImageSpec{Image: c.create.GetConfig().GetImage().GetImage()}
	switch r := method.NewRequest().(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return p.run
	case *runtimeapi.UpdatePodSandboxResourcesRequest:
		return p.resize
	case *runtimeapi.RestorePodRequest:
		r.Config, r.RuntimeHandler = p.run.GetConfig(), p.run.GetRuntimeHandler()
		return r
	case *runtimeapi.CreateContainerRequest:
		return cmp.Or(c.create, r)
	case *runtimeapi.UpdateContainerResourcesRequest:
		return cmp.Or(c.update, r)
	case *runtimeapi.PullImageRequest:
		r.Image, r.SandboxConfig = image, p.run.GetConfig()
		return r
	case *runtimeapi.RemoveImageRequest:
		r.Image = image
		return r
	default:
		named := r.ProtoReflect()
		for name, id := range map[protoreflect.Name]string{"pod_sandbox_id": p.id, "container_id": c.id} {
			if field := named.Descriptor().Fields().ByName(name); field != nil {
				named.Set(field, protoreflect.ValueOfString(id))
			}
		}
		return r
	}
}

// messages are a call's, as crifield has them.
type messages struct{ Call }

func (m messages) Hook() abi.Hook                      { return m.Method.Pre }
func (m messages) Time() time.Time                     { return time.Time{} }
func (m messages) Messages() (req, resp proto.Message) { return m.Request, m.Response }

// DefaultNode is a node as there are many.
func DefaultNode(cgroupVersion int) crifield.Node {
	return crifield.Node{
		CgroupVersion: cgroupVersion, CgroupDriver: "cgroupfs", RuntimeName: "containerd", RuntimeVersion: "v2.2.0",
		RuntimeHandlers: []string{"", "runc"}, CPUs: 4, Memory: 16 << 30, Kernel: "6.12.0",
	}
}
