package proxy_test

import (
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// generator writes random messages of known types straight to wire format, as
// no encoder would: fields in any order, some twice, some nobody knows, at
// every level. So a message that was decoded and encoded again is not the same.
type generator struct{ *rand.Rand }

func (g generator) message(d protoreflect.MessageDescriptor, depth int) []byte {
	b := g.unknown(nil)
	fields := d.Fields()
	for _, i := range g.Perm(fields.Len()) {
		for range 1 + g.IntN(4)/3 {
			b = g.field(b, fields.Get(i), depth)
		}
	}
	return g.unknown(b)
}

func (g generator) field(b []byte, d protoreflect.FieldDescriptor, depth int) []byte {
	if d.Message() != nil {
		if depth == 0 {
			return b
		}
		b = protowire.AppendTag(b, d.Number(), protowire.BytesType)
		return protowire.AppendBytes(b, g.message(d.Message(), depth-1))
	}
	switch d.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		b = protowire.AppendTag(b, d.Number(), protowire.BytesType)
		return protowire.AppendString(b, g.text())
	case protoreflect.DoubleKind:
		b = protowire.AppendTag(b, d.Number(), protowire.Fixed64Type)
		return protowire.AppendFixed64(b, g.Uint64())
	case protoreflect.FloatKind:
		b = protowire.AppendTag(b, d.Number(), protowire.Fixed32Type)
		return protowire.AppendFixed32(b, g.Uint32())
	case protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Int64Kind,
		protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind:
		b = protowire.AppendTag(b, d.Number(), protowire.VarintType)
		return protowire.AppendVarint(b, g.Uint64()>>g.IntN(64))
	}
	panic("CRI has got a field of kind " + d.Kind().String())
}

// unknown appends a field of each wire type with numbers that CRI has not given
// out, an empty group among them.
func (g generator) unknown(b []byte) []byte {
	b = protowire.AppendTag(b, 900, protowire.VarintType)
	b = protowire.AppendVarint(b, g.Uint64())
	b = protowire.AppendTag(b, 70_000, protowire.BytesType)
	b = protowire.AppendString(b, g.text()+"\xff\xfe")
	b = protowire.AppendTag(b, 901, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, g.Uint32())
	b = protowire.AppendTag(b, 902, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, g.Uint64())
	b = protowire.AppendTag(b, 903, protowire.StartGroupType)
	return protowire.AppendTag(b, 903, protowire.EndGroupType)
}

func (g generator) text() string {
	runes := make([]rune, g.IntN(20))
	for i := range runes {
		runes[i] = rune(g.IntN(0xd7ff))
	}
	return string(runes)
}
