package crifield

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

var (
	mounts     = records(abi.ContainerMounts, (*runtimeapi.Mount).GetContainerPath, withoutImage)
	devices    = records(abi.ContainerDevices, (*runtimeapi.Device).GetContainerPath, func(*runtimeapi.Device) {})
	cdiDevices = element[*runtimeapi.CDIDevice]{(*runtimeapi.CDIDevice).GetName, (*runtimeapi.CDIDevice).GetName,
		func(_ *runtimeapi.CDIDevice, name string) *runtimeapi.CDIDevice {
			return &runtimeapi.CDIDevice{Name: name}
		}}
	groups = element[int64]{decimal, decimal, func(_ int64, text string) int64 {
		group, _ := strconv.ParseInt(text, 10, 64) // checked when the plugin made the change
		return group
	}}
)

// records are elements with the keys of abi.Records, which are CRI's own names. What a record
// cannot say, such as a mount's mappings of ids, stays as it is in an element that a plugin
// changes; adapt then brings the rest into accord.
func records[M proto.Message](f abi.Field, key func(M) string, adapt func(M)) element[M] {
	info, _ := abi.FieldOf(abi.Container, f)
	keys := info.RecordKeys()
	return element[M]{
		key: key,
		text: func(m M) string {
			return string(abi.AppendRecord(nil, keys, func(key string) string { return attribute(m.ProtoReflect(), key) }))
		},
		take: func(m M, text string) M {
			if !m.ProtoReflect().IsValid() {
				m = m.ProtoReflect().New().Interface().(M)
			}
			values := map[string]string{}
			abi.EachEntry(text, func(key, value string) bool { values[key] = value; return true })
			for _, key := range keys {
				setAttribute(m.ProtoReflect(), key, values[key])
			}
			adapt(m)
			return m
		},
	}
}

// withoutImage drops a mount's image if there is a path of the host instead.
func withoutImage(m *runtimeapi.Mount) {
	if m.HostPath != "" {
		m.Image, m.ImageSubPath = nil, ""
	}
}

// attribute is a text, a truth that is "true" or "", or the propagation of a mount.
func attribute(m protoreflect.Message, name string) string {
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch v := m.Get(field); field.Kind() {
	case protoreflect.EnumKind:
		return propagations.of(int32(v.Enum()))
	case protoreflect.BoolKind:
		if v.Bool() {
			return "true"
		}
		return ""
	default:
		return v.String()
	}
}

func setAttribute(m protoreflect.Message, name, text string) {
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch field.Kind() {
	case protoreflect.EnumKind:
		m.Set(field, protoreflect.ValueOfEnum(protoreflect.EnumNumber(propagations.value(text))))
	case protoreflect.BoolKind:
		m.Set(field, protoreflect.ValueOfBool(text == "true"))
	default:
		m.Set(field, protoreflect.ValueOfString(text))
	}
}

func variable(v *runtimeapi.KeyValue) (name, text string) { return v.GetKey(), string(v.GetValue()) }

func setVariable(v *runtimeapi.KeyValue, name, text string) { v.Key, v.Value = name, []byte(text) }

func hugepage(l *runtimeapi.HugepageLimit) (size, bytes string) {
	return l.GetPageSize(), strconv.FormatUint(l.GetLimit(), 10)
}

func setHugepage(l *runtimeapi.HugepageLimit, size, bytes string) {
	l.PageSize = size
	l.Limit, _ = strconv.ParseUint(bytes, 10, 64) // checked when the plugin made the change
}
