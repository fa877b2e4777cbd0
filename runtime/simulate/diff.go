package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Difference is one field that differs, by its path. A value is nil where a message does not have the field.
type Difference struct {
	Path   string  `json:"path"`
	Before *string `json:"before"`
	After  *string `json:"after"`
	Secret bool    `json:"-"` // an environment's value, or a registry's credentials
}

// String returns the difference as a line for people.
func (d Difference) String() string {
	switch {
	case d.Before == nil:
		return fmt.Sprintf("+ %s: %s", d.Path, *d.After)
	case d.After == nil:
		return fmt.Sprintf("- %s: %s", d.Path, *d.Before)
	}
	return fmt.Sprintf("~ %s: %s -> %s", d.Path, *d.Before, *d.After)
}

// Redacted returns the difference without the values of a secret.
func (d Difference) Redacted() Difference {
	if d.Secret {
		d.rewrite(func(string) string { return plugin.Redacted })
	}
	return d
}

// rewrite gives the difference other values.
func (d *Difference) rewrite(other func(string) string) {
	for _, v := range []**string{&d.Before, &d.After} {
		if *v != nil {
			text := other(**v)
			*v = &text
		}
	}
}

// Diff returns the fields in which two messages of one type differ, in the order of
// the first and then of the second. Elements of lists are known by their name where
// they have one, such as env[NAME] or mounts[/data].
func Diff(before, after proto.Message) []Difference {
	old, young := flatten(before), flatten(after)
	var all []Difference
	for _, path := range old.order {
		was := old.values[path]
		if is, has := young.values[path]; !has {
			all = append(all, Difference{path, &was.text, nil, was.secret})
		} else if was.text != is.text {
			all = append(all, Difference{path, &was.text, &is.text, was.secret})
		}
	}
	for _, path := range young.order {
		if _, had := old.values[path]; !had {
			is := young.values[path]
			all = append(all, Difference{path, nil, &is.text, is.secret})
		}
	}
	return all
}

// Fields returns all fields of a message as differences from none.
func Fields(m proto.Message) []Difference {
	return Diff(m.ProtoReflect().New().Interface(), m)
}

// leaf is a field that holds no others.
type leaf struct {
	text   string
	secret bool
}

// flat is a message as its leaves, by path.
type flat struct {
	values map[string]leaf
	order  []string
}

func flatten(m proto.Message) *flat {
	f := &flat{values: map[string]leaf{}}
	f.message("", m.ProtoReflect(), false)
	return f
}

func (f *flat) put(path string, l leaf) {
	for n, base := 2, path; ; n++ { // a variable may be there twice
		if _, taken := f.values[path]; !taken {
			break
		}
		path = base + "#" + strconv.Itoa(n)
	}
	f.values[path] = l
	f.order = append(f.order, path)
}

func (f *flat) message(path string, m protoreflect.Message, secret bool) {
	if kv, ok := m.Interface().(*runtimeapi.KeyValue); ok {
		f.put(path, leaf{strconv.Quote(string(kv.GetValue())), true})
		return
	}
	_, auth := m.Interface().(*runtimeapi.AuthConfig)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() { // in the order of the .proto
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		at := string(fd.Name())
		if path != "" {
			at = path + "." + at
		}
		v, secret := m.Get(fd), secret || auth
		switch {
		case fd.IsMap():
			entries := map[string]protoreflect.Value{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool { entries[k.String()] = v; return true })
			for _, key := range slices.Sorted(maps.Keys(entries)) {
				f.value(at+"["+strconv.Quote(key)+"]", fd.MapValue(), entries[key], secret)
			}
		case fd.IsList():
			for i := range v.List().Len() {
				e := v.List().Get(i)
				f.value(at+"["+elementName(fd, e, i)+"]", fd, e, secret)
			}
		default:
			f.value(at, fd, v, secret)
		}
	}
	if len(m.GetUnknown()) > 0 {
		f.put(path+".unknown fields", leaf{fmt.Sprintf("%d bytes", len(m.GetUnknown())), false})
	}
}

func (f *flat) value(path string, fd protoreflect.FieldDescriptor, v protoreflect.Value, secret bool) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		f.message(path, v.Message(), secret)
	case protoreflect.EnumKind:
		name := v.String()
		if d := fd.Enum().Values().ByNumber(v.Enum()); d != nil {
			name = string(d.Name())
		}
		f.put(path, leaf{name, secret})
	case protoreflect.StringKind:
		f.put(path, leaf{strconv.Quote(v.String()), secret})
	case protoreflect.BytesKind:
		f.put(path, leaf{strconv.Quote(string(v.Bytes())), secret})
	default:
		f.put(path, leaf{v.String(), secret})
	}
}

// elementName is what people know an element by, its place in the list if by nothing.
func elementName(fd protoreflect.FieldDescriptor, v protoreflect.Value, i int) string {
	if fd.Kind() != protoreflect.MessageKind {
		return strconv.Itoa(i)
	}
	switch e := v.Message().Interface().(type) {
	case *runtimeapi.KeyValue:
		return e.GetKey()
	case *runtimeapi.HugepageLimit:
		return e.GetPageSize()
	case interface{ GetContainerPath() string }:
		return e.GetContainerPath()
	case *runtimeapi.CDIDevice:
		return e.GetName()
	}
	return strconv.Itoa(i)
}
