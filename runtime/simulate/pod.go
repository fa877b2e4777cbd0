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

// event tells of the pod, or of its container a, which is the first in the list or nil, and says about of itself.
func (p *podFixture) event(hook abi.Hook, a *containerFixture, about fixture.Fields) *Event {
	e := &Event{Hook: hook, Digests: map[string][]string{}}
	p.addDigests(e)
	method := cri.MethodNamed(hook.Info().Method)
	if method == nil { // the hook is apart from calls
		e.Before = p.earlier(p.containers)
		return e
	}

	c := cmp.Or(a, &containerFixture{}) // without one its id is not known
	var request proto.Message
	for _, known := range []proto.Message{p.run, p.resize, c.create, c.update} {
		if cri.MethodOf(known) == method {
			request = known
		}
	}
	if request == nil { // of what it carries the pod says these
		request = method.NewRequest()
		cri.SetIDs(request, p.id, c.id)
		carried := method.Carries(request)
		if carried.Pod != nil {
			*carried.Pod = p.run.GetConfig()
		}
		if carried.RuntimeHandler != nil {
			*carried.RuntimeHandler = p.run.GetRuntimeHandler()
		}
	}
	e.Call = newCall(request).answer(p.id, c.id)
	set(e.Call.object(), abi.Event, fixture.Fields{"image": pulledName(c.create.GetConfig().GetImage())})
	set(e.Call.object(), abi.Event, about)

	before := p.containers
	switch {
	case method.Object == abi.Event || method.MakesPods():
		return e
	case method.Effect == cri.Makes:
		before = slices.DeleteFunc(slices.Clone(before), func(c *containerFixture) bool { return c == a })
	case method.Effect == cri.Starts && a != nil:
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
