package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// first is what a fixture begins with.
type first struct {
	Hook string `json:"hook"`
}

// kindPod finds a Pod in YAML or JSON. A request is no text, or has no kind.
var kindPod = regexp.MustCompile(`(?m)^\s*[{]?\s*"?kind"?\s*:\s*"?Pod"?\s*(#.*)?,?\s*$|"kind"\s*:\s*"Pod"`)

// otherKind finds what an object of the cluster is, in YAML. JSON says it at no place of its own.
var otherKind = regexp.MustCompile(`(?m)^kind:\s*"?(\w+)`)

// badValue is protojson's word for a value of a wrong form, such as one of an environment
// variable that is not in base64.
var badValue = regexp.MustCompile(`(invalid value for bytes field \w+): .*`)

func readFixture(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	cases, err := fixture.Parse("case", file)
	if err != nil {
		return nil, err
	}
	var found, names []string
	var first fixture.Case
	for _, c := range cases {
		name := fmt.Sprintf("%q (%v)", c.Name, c.Hook)
		names = append(names, name)
		named := s.Case == "" || s.Case == c.Name
		if !named || hook != 0 && c.Hook != hook {
			continue
		}
		if len(found) == 0 {
			first = c
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		wanted := []string{s.Case, hook.String()}
		return nil, fmt.Errorf("no case is %s; there are %s",
			strings.Join(slices.DeleteFunc(wanted, func(w string) bool { return w == "" }), " for "), strings.Join(names, ", "))
	}
	e, err := FromFixture(first, s.CgroupVersion)
	if err == nil && len(found) > 1 {
		others := strings.Join(found[1:], ", ")
		e.Notes = append(e.Notes, fmt.Sprintf("this is %s, the first of %d cases that fit; choose another with --case or --hook: %s", found[0], len(found), others))
	}
	return e, err
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
		err = protojson.Unmarshal(file, request)
		if err != nil && badValue.MatchString(err.Error()) { // the value may be a secret
			err = errors.New(badValue.ReplaceAllString(err.Error(), "$1: it is not in base64"))
		}
	} else {
		err = proto.Unmarshal(file, request)
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a Pod, a fixture or a %s: %w", name, err)
	}
	e := &Event{Hook: hook, Node: DefaultNode(s.cgroup()), Grant: abi.DefaultGrant()}
	e.Call = newCall(request).answer("sandbox", "container")
	switch carried := method.Carries(request); {
	case carried.Container != nil:
		run := newCall(&runtimeapi.RunPodSandboxRequest{Config: proto.CloneOf(*carried.Pod)})
		e.Before = []Call{run.answer(cri.PodID(request), "")}
	case method.Object != abi.Event && method.Effect != cri.Makes:
		return nil, fmt.Errorf("a %s names a %v only by its id: give a Pod or a fixture", name, method.Object)
	}
	return e, nil
}

// ErrNoHook is the error of an event that does not say which hook it is for.
var ErrNoHook = errors.New("it does not name its hook")

// Read returns the event in a file of any of the kinds that there are. With a
// fixture hook may be 0: the fixture says it.
func Read(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	var f first
	var list []first // a fixture may be one
	if json.Unmarshal(file, &f) != nil && json.Unmarshal(file, &list) == nil && len(list) > 0 {
		f = list[0]
	}
	switch {
	case len(bytes.TrimSpace(file)) == 0:
		return nil, errors.New("it is empty")
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
