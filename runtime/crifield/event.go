package crifield

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// eventRows name fields of messages. In all messages of hooked calls one name stands for
// one thing.
var eventRows = map[abi.Field]access{
	abi.EventHook:     {int64: func(o Object) (int64, bool) { return int64(o.Event.Hook()), true }},
	abi.EventTime:     {int64: func(o Object) (int64, bool) { return o.Event.Time().UnixNano(), true }},
	abi.EventMethod:   {text: func(o Object) (string, bool) { m := o.Event.Hook().Info().Method; return m, m != "" }},
	abi.EventImage:    {text: requestedImage, set: requestImage},
	abi.EventImageRef: response("image_ref").asText(),
	abi.EventCommand:  request("cmd").asList(),
	abi.EventTTY:      request("tty").asNumber(),
	abi.EventStdin:    request("stdin").asNumber(),
	abi.EventTimeout:  request("timeout").asNumber(),
	abi.EventExitCode: response("exit_code").asNumber(),
	abi.EventPorts:    request("port").asList(),
	abi.EventLocation: request("location", "output_path", "checkpoint_path").asText(),
}

// messageField finds a field of an event's request or response; the descriptor is nil if
// its message has none.
type messageField func(Object) (protoreflect.Message, protoreflect.FieldDescriptor)

// request is the field of the request that has one of these names.
func request(names ...protoreflect.Name) messageField {
	return func(o Object) (protoreflect.Message, protoreflect.FieldDescriptor) {
		req, _ := o.Event.Messages()
		return named(req, names)
	}
}

// response is the same for the response.
func response(names ...protoreflect.Name) messageField {
	return func(o Object) (protoreflect.Message, protoreflect.FieldDescriptor) {
		_, resp := o.Event.Messages()
		return named(resp, names)
	}
}

func named(m proto.Message, names []protoreflect.Name) (protoreflect.Message, protoreflect.FieldDescriptor) {
	if m == nil {
		return nil, nil
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for _, name := range names {
		if field := fields.ByName(name); field != nil {
			return m.ProtoReflect(), field
		}
	}
	return nil, nil
}

func (find messageField) asNumber() access {
	return access{set: find.set, int64: func(o Object) (int64, bool) {
		m, field := find(o)
		switch {
		case field == nil:
			return 0, false
		case field.Kind() != protoreflect.BoolKind:
			return m.Get(field).Int(), true
		case m.Get(field).Bool():
			return 1, true
		}
		return 0, true
	}}
}

func (find messageField) asText() access {
	return access{set: find.set, text: func(o Object) (string, bool) {
		m, field := find(o)
		if field == nil {
			return "", false
		}
		return m.Get(field).String(), true
	}}
}

func (find messageField) asList() access {
	return access{set: find.set, list: func(o Object) (list []string, ok bool) {
		m, field := find(o)
		if field == nil {
			return nil, false
		}
		for elements, i := m.Get(field).List(), 0; i < elements.Len(); i++ {
			list = append(list, elements.Get(i).String())
		}
		return list, true
	}}
}

func (find messageField) set(o Object, c *plugin.Change) {
	m, field := find(o)
	switch {
	case field == nil:
	case field.IsList():
		list := m.NewField(field)
		for _, e := range c.Elements() {
			list.List().Append(valueOf(field, e))
		}
		m.Set(field, list)
	case c.Op == plugin.SetInt64:
		m.Set(field, valueOf(field, decimal(c.Int)))
	default:
		m.Set(field, valueOf(field, c.Text))
	}
}

// valueOf returns a text as the field has it. A text that is no number is 0.
func valueOf(field protoreflect.FieldDescriptor, text string) protoreflect.Value {
	n, _ := strconv.ParseInt(text, 10, 64)
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n != 0)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	}
	return protoreflect.ValueOfString(text)
}

func requestedImage(o Object) (string, bool) {
	req, _ := o.Event.Messages()
	r, ok := req.(interface {
		GetImage() *runtimeapi.ImageSpec
	})
	if !ok {
		return "", false
	}
	return imageOf(r.GetImage())
}

// requestImage asks for another image. The caller's credentials are for the registry of the
// one that it asked for: another registry does not get them.
func requestImage(o Object, c *plugin.Change) {
	switch r, _ := o.Event.Messages(); r := r.(type) {
	case *runtimeapi.PullImageRequest:
		if registryOf(c.Text) != registryOf(r.GetImage().GetImage()) {
			r.Auth = nil
		}
		r.Image = withImage(r.Image, c.Text)
	case *runtimeapi.RemoveImageRequest:
		r.Image = withImage(r.Image, c.Text)
	}
}
