package intercept

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// flat is an object's view. Few are asked for in one event.
type flat struct {
	object abi.Object
	view   []byte
}

// View implements plugin.Event. A view is encoded once and is the same for every
// plugin of the chain, so nothing is in it that needs a capability.
func (e *event) View(o abi.Object) ([]byte, abi.Errno) {
	for i := range e.views {
		if e.views[i].object == o {
			return e.views[i].view, abi.OK
		}
	}
	s := e.scalars(o)
	if s == nil || s.untoldField(0) { // a view has no way to say what is not known
		return nil, abi.NotFound
	}
	view, errno := plugin.EncodeScalars(e.Kind(o), s.int64, s.text)
	if errno == abi.OK {
		e.views = append(e.views, flat{o, view})
	}
	return view, errno
}

// outdate forgets the view of an object that has changed.
func (e *event) outdate(o abi.Object) {
	e.views = slices.DeleteFunc(e.views, func(f flat) bool { return f.object == o })
}

// Raw implements plugin.Event. Fields that this build does not know may be of
// any kind, and go as they came.
func (e *event) Raw(has abi.CapabilitySet) ([]byte, abi.Errno) {
	if e.about.req == nil {
		return nil, abi.NotFound
	}
	req := e.about.req
	if !has.Has(abi.Env) || !has.Has(abi.Credentials) {
		req = proto.Clone(req)
		hide(req.ProtoReflect(), has)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(req) // of maps too: the same event gives the same bytes
	if err != nil {
		return nil, abi.Invalid
	}
	return raw, abi.OK
}

// hide empties, wherever it is in m, what needs a capability that is lacking: the
// values of an environment, and the credentials of a registry whole.
func hide(m protoreflect.Message, has abi.CapabilitySet) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				hide(v.List().Get(i).Message(), has)
			}
		case f.Message() == authConfig && !has.Has(abi.Credentials):
			m.Clear(f)
		default:
			hide(v.Message(), has)
		}
		return true
	})
	if kv, ok := m.Interface().(*runtimeapi.KeyValue); ok && !has.Has(abi.Env) {
		kv.Value = nil
		m.SetUnknown(nil)
	}
}

var authConfig = (&runtimeapi.AuthConfig{}).ProtoReflect().Descriptor()
