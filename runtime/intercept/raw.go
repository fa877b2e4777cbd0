package intercept

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Raw implements plugin.Event. Fields that this build does not know may be of
// any kind, and go as they came.
func (e *event) Raw(has abi.CapabilitySet) ([]byte, abi.Errno) {
	if e.req == nil {
		return nil, abi.NotFound
	}
	req := e.req
	if entries(req.ProtoReflect()) > abi.MaxEntries { // to copy and sort them would take longer than a hook has
		return nil, abi.TooLarge
	}
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

// entries counts those of maps and lists, wherever they are in m, at least until there are too many.
func entries(m protoreflect.Message) (n int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			n += v.Map().Len()
		case f.IsList():
			n += v.List().Len()
			for i := 0; f.Message() != nil && i < v.List().Len() && n <= abi.MaxEntries; i++ {
				n += entries(v.List().Get(i).Message())
			}
		case f.Message() != nil:
			n += entries(v.Message())
		}
		return n <= abi.MaxEntries
	})
	return n
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
