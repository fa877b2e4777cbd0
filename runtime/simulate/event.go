package simulate

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Event is one hook with all that it needs. What it points to is not changed.
type Event struct {
	Hook   abi.Hook
	Before []Call // what made the pods and containers that there are, in order
	Call   Call   // whose hook it is; the zero Call in a hook apart from calls
	Node   crifield.Node
	// Files are cgroup files that plugins may read, by the id of the pod or
	// container and their v2 names.
	Files map[string]map[string]string
	// Digests are what the runtime tells of images, by their users' names.
	Digests map[string][]string
	// PodGroup is what kubelet has written to the cgroup of the event's own pod; nil: what the
	// sandbox's config says.
	PodGroup *runtimeapi.LinuxContainerResources
	Notes    []string // for people: what could not be had
	Previous *Event   // what the same plugin is told before; nil: it is loaded for this event

	Fixture bool   // it says config and grant itself, and no match counts
	Config  string // what the plugin is configured with, if the event says so
	Grant   abi.CapabilitySet
	KV      map[string]string
	Earlier fixture.Changes // what a plugin asks for that is called before
	Time    time.Time       // when the call comes; zero: when it is simulated
	Raw     []byte          // what the plugin reads as the request, if Time is set; nil: the request
}

// Call is a CRI call that the backend answers with Response.
type Call struct {
	Method            *cri.Method
	Request, Response proto.Message
}

// newCall returns a call of the method that has this request, with an answer without
// anything in it.
func newCall(request proto.Message) Call {
	m := cri.MethodOf(request)
	return Call{Method: m, Request: request, Response: m.NewResponse()}
}

// answer fills in the ids of what the call makes.
func (c Call) answer(pod, container string) Call {
	if c.Method.Effect == cri.Makes {
		cri.SetIDs(c.Response, pod, container)
	}
	return c
}

// Title says what the event is about, as far as it is one pod.
func (e *Event) Title() string {
	title := e.Hook.String()
	if e.Hook.Info().Object == abi.Event {
		return title
	}
	for _, c := range append(e.Before[:len(e.Before):len(e.Before)], e.Call) {
		if !c.Method.MakesPods() {
			continue
		}
		if config := *c.Method.Carries(c.Request).Pod; config != nil {
			m := config.GetMetadata()
			title = fmt.Sprintf("%s of %s/%s", e.Hook, m.GetNamespace(), m.GetName())
		}
	}
	return title
}
