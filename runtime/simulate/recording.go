package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// entry is one call of a recording. Other entries are passed over.
type entry struct {
	Method   string          `json:"method"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
}

// FromRecording returns the event of the last call of the hook's method in a
// recording, which is a list of {"method", "request", "response"} with messages as
// protojson. The calls before are what the store knows.
func FromRecording(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	var entries []entry
	if err := json.Unmarshal(file, &entries); err != nil {
		return nil, err
	}
	method := cri.MethodNamed(hook.Info().Method)
	last := len(entries)
	for i, e := range entries {
		if method != nil && method == cri.MethodNamed(e.Method) {
			last = i
		}
	}
	e := &Event{Hook: hook, Node: DefaultNode(s.cgroup()), Grant: abi.DefaultGrant()}
	if method != nil && last == len(entries) {
		return nil, fmt.Errorf("the recording has no call of %s", method.Name)
	}
	for i, recorded := range entries[:min(last+1, len(entries))] {
		m := cri.MethodNamed(recorded.Method)
		if m == nil { // the proxy does not decode it
			continue
		}
		c := newCall(m.NewRequest())
		if err := errors.Join(decode(recorded.Request, c.Request), decode(recorded.Response, c.Response)); err != nil {
			return nil, fmt.Errorf("entry %d, %s: %w", i+1, recorded.Method, err)
		}
		switch {
		case i == last:
			e.Call = c
		case m.Effect != cri.Nothing:
			e.Before = append(e.Before, c)
		}
	}
	return e, nil
}

func decode(text json.RawMessage, m proto.Message) error {
	if len(text) == 0 {
		return nil
	}
	return withoutValue(protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m))
}

// FromRequest returns the event of one request of the hook's method, as protojson or
// as it is on the wire.
func FromRequest(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	method := cri.MethodNamed(hook.Info().Method)
	if method == nil {
		return nil, fmt.Errorf("hook %s belongs to no CRI call, so it has no request", hook)
	}
	request := method.NewRequest()
	name := request.ProtoReflect().Descriptor().Name()
	var err error
	if json.Valid(file) {
		err = withoutValue(protojson.Unmarshal(file, request))
	} else {
		err = proto.Unmarshal(file, request)
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a Pod, a fixture, a recording or a %s: %w", name, err)
	}
	e := &Event{Hook: hook, Node: DefaultNode(s.cgroup()), Grant: abi.DefaultGrant()}
	e.Call = newCall(request).answer("sandbox", "container")
	switch carried := method.Carries(request); {
	case carried.Container != nil:
		run := newCall(&runtimeapi.RunPodSandboxRequest{Config: proto.CloneOf(*carried.Pod)})
		e.Before = []Call{run.answer(cri.PodID(request), "")}
	case method.Object != abi.Event && method.Effect != cri.Makes:
		return nil, fmt.Errorf("a %s names a %v only by its id: give a recording that begins with RunPodSandbox", name, method.Object)
	}
	return e, nil
}

// ErrNoHook is the error of an event that does not say which hook it is for.
var ErrNoHook = errors.New("it does not name its hook")

// Read returns the event in a file of any of the kinds that there are. With a
// fixture hook may be 0: the fixture says it.
func Read(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	var f first
	var list []first
	if json.Unmarshal(file, &f) != nil && json.Unmarshal(file, &list) == nil && len(list) > 0 {
		f = list[0]
	}
	switch {
	case len(bytes.TrimSpace(file)) == 0:
		return nil, errors.New("it is empty")
	case f.Method+f.Point != "":
		return FromRecording(file, hook, s)
	case f.Hook != "":
		return readFixture(file, hook, s)
	case hook == 0:
		return nil, ErrNoHook
	case s.Case != "":
		return nil, fmt.Errorf("it is not a fixture, so it has no case %q", s.Case)
	case kindPod.Match(file):
		return FromPod(file, hook, s)
	}
	if kind := otherKind.FindSubmatch(file); kind != nil {
		return nil, fmt.Errorf("it is a %s, not a Pod", kind[1])
	}
	return FromRequest(file, hook, s)
}
