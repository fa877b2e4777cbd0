package slogsink

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Attrs returns what an event knows: its fields, by their names in snake case. Empty texts,
// nil lists and maps, nil errors and zero times are left out.
func Attrs(e observe.Event) []slog.Attr {
	v := reflect.ValueOf(e).Elem()
	return attrsOf(fieldsOf(v.Type()), v, nil)
}

// field is a field of a type of events.
type field struct {
	index  int
	key    string  // of the attribute; "" if it holds other fields
	fields []field // of an embedded struct, or of a subject's object
}

// fieldsOf returns the fields of a struct that are attributes, or hold some.
func fieldsOf(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Tag.Get("log") == "-":
		case f.Type == reflect.TypeFor[observe.Subject]():
			all = append(all, field{index: i, fields: fieldsOf(reflect.TypeFor[observe.Object]())})
		case f.Anonymous:
			all = append(all, field{index: i, fields: fieldsOf(f.Type)})
		default:
			all = append(all, field{index: i, key: snake(f.Name)})
		}
	}
	return all
}

// attrsOf appends the attributes of a struct with these fields.
func attrsOf(fields []field, of reflect.Value, attrs []slog.Attr) []slog.Attr {
	for i := range fields {
		f := &fields[i]
		v := of.Field(f.index)
		if f.key != "" {
			if value, known := valueOf(v); known {
				attrs = append(attrs, slog.Attr{Key: f.key, Value: value})
			}
			continue
		}
		if v.Kind() == reflect.Interface {
			v = reflect.ValueOf(observe.ObjectOf(v.Interface()))
		}
		attrs = attrsOf(f.fields, v, attrs)
	}
	return attrs
}

// valueOf returns the value of an attribute, and whether it is known. Zero is a number like
// others.
func valueOf(v reflect.Value) (_ slog.Value, known bool) {
	switch v.Kind() {
	case reflect.String:
		return slog.StringValue(v.String()), v.Len() > 0
	case reflect.Map:
		keys := v.MapKeys() // a group, in the order of its keys
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		attrs := make([]slog.Attr, len(keys))
		for i, key := range keys {
			attrs[i].Key = key.String()
			attrs[i].Value, _ = valueOf(v.MapIndex(key))
		}
		return slog.GroupValue(attrs...), !v.IsNil()
	case reflect.Slice, reflect.Interface:
		return slog.AnyValue(v.Interface()), !v.IsNil()
	}
	switch of := v.Interface().(type) {
	case time.Duration:
		return slog.StringValue(of.String()), true // in JSON a number would have no unit
	case time.Time:
		return slog.TimeValue(of), !of.IsZero()
	case fmt.Stringer: // a hook
		return slog.StringValue(of.String()), !v.IsZero()
	default:
		return slog.AnyValue(of), true
	}
}

// snake returns a field's name as an attribute's: PodID is pod_id.
func snake(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		if unicode.IsUpper(r) && !upper {
			b.WriteByte('_')
		}
		upper = unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
