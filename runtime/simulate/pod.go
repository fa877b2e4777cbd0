package simulate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// containerFixture is a container of an event, with the requests of its life.
type containerFixture struct {
	id, state string   // state as the ABI has it; "" is what the hook finds
	digests   []string // of its image
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
	e := &Event{Hook: hook, Call: p.call(hook, a, about), Digests: map[string][]string{}}
	p.addDigests(e)
	before := p.containers
	switch m := e.Call.Method; {
	case m == nil:
	case m.Object == abi.Event || m.MakesPods():
		return e
	case m.Effect == cri.Makes:
		before = slices.DeleteFunc(slices.Clone(before), func(c *containerFixture) bool { return c == a })
	case m.Effect == cri.Starts && a != nil:
		a.state = cmp.Or(a.state, "created")
	}
	e.Before = p.earlier(before)
	return e
}

// addDigests tells the event of the digests of the containers' images.
func (p *podFixture) addDigests(e *Event) {
	for _, c := range p.containers {
		if len(c.digests) > 0 {
			e.Digests[imageName(c.create.GetConfig().GetImage())] = c.digests
		}
	}
}

// imageName is an image's name, of which a container's request may have the id.
func imageName(spec *runtimeapi.ImageSpec) string {
	return cmp.Or(spec.GetUserSpecifiedImage(), spec.GetImage())
}

// pulledName is how kubelet has an image pulled: with a tag, if the user wrote neither a tag nor a digest.
func pulledName(spec *runtimeapi.ImageSpec) string {
	name := imageName(spec)
	tagged := strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/')
	if name == "" || tagged || strings.Contains(name, "@") {
		return name
	}
	return name + ":latest"
}

// call makes the call of the hook with what the event says of it, the zero Call if the
// hook is apart from calls. c may be nil: its id is not known then.
func (p *podFixture) call(hook abi.Hook, c *containerFixture, about fixture.Fields) Call {
	method := cri.MethodNamed(hook.Info().Method)
	if method == nil {
		return Call{}
	}
	if c == nil {
		c = &containerFixture{}
	}
	call := newCall(p.request(method, c)).answer(p.id, c.id)
	set(call.object(), abi.Event, fixture.Fields{"image": pulledName(c.create.GetConfig().GetImage())})
	set(call.object(), abi.Event, about)
	return call
}

// request returns a request of the method as far as the pod and the container say it.
func (p *podFixture) request(method *cri.Method, c *containerFixture) proto.Message {
	for _, known := range []proto.Message{p.run, p.resize, c.create, c.update} {
		if cri.MethodOf(known) == method {
			return known
		}
	}
	r := method.NewRequest()
	cri.SetIDs(r, p.id, c.id)
	carried := method.Carries(r)
	if carried.Pod != nil {
		*carried.Pod = p.run.GetConfig()
	}
	if carried.RuntimeHandler != nil {
		*carried.RuntimeHandler = p.run.GetRuntimeHandler()
	}
	return r
}

// object is the event of the call.
func (c Call) object() crifield.Object { return crifield.Object{Event: messages{c}} }

// messages are a call's, as crifield has them.
type messages struct{ Call }

func (m messages) Hook() abi.Hook                      { return m.Method.Pre }
func (m messages) Time() time.Time                     { return time.Time{} }
func (m messages) Messages() (req, resp proto.Message) { return m.Request, m.Response }

// DefaultNode is a node as there are many.
func DefaultNode(cgroupVersion int) crifield.Node { return newNode(fixture.Node(cgroupVersion)) }

func newNode(fields fixture.Fields) (n crifield.Node) {
	set(crifield.Object{Node: &n}, abi.Node, fields)
	return n
}
