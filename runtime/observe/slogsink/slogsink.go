// Package slogsink writes events to a log. It has every message that operators see.
package slogsink

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Sink is an [observe.Observer] that writes to a log.
type Sink struct{ log *slog.Logger }

// New returns a sink for this log.
func New(log *slog.Logger) *Sink { return &Sink{log} }

// Wants implements observe.Observer.
func (s *Sink) Wants(k observe.Kind) bool {
	level := slog.LevelDebug // of all frequent events but plugins' own lines
	if k >= observe.KindPluginLog(observe.Debug) {
		level = levelOf(observe.Level(k - observe.KindPluginLog(observe.Debug)))
	}
	return s.log.Enabled(context.Background(), level)
}

// Observe implements observe.Observer.
func (s *Sink) Observe(ctx context.Context, e observe.Event) {
	if _, hot := e.(*observe.HookCalled); hot && !s.Wants(observe.KindHookCalled) {
		return // before the search for its message
	}
	if m := MessageOf(e); s.log.Enabled(ctx, m.Level) {
		s.log.LogAttrs(ctx, m.Level, m.Text, Attrs(e)...)
	}
}

// MessageOf returns the message of an event. Its level is that of the event.
func MessageOf(e observe.Event) Message {
	i := slices.IndexFunc(Messages, func(m Message) bool { return reflect.TypeOf(m.Event) == reflect.TypeOf(e) })
	m := Messages[i] // a test holds that all are there
	if line, ok := e.(*observe.PluginLog); ok {
		m.Level = levelOf(line.Level)
	}
	return m
}

// Warns reports whether an event is an error or a warning for operators.
func Warns(e observe.Event) bool { return MessageOf(e).Level >= slog.LevelWarn }

func levelOf(l observe.Level) slog.Level {
	return [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[l]
}

// Line returns an event as a line for people: the message, the names and values of other
// attributes than those to leave out, and an error's text.
func Line(e observe.Event, except ...string) string {
	var known []string
	for _, a := range Attrs(e) {
		switch {
		case slices.Contains(except, a.Key):
		case a.Key == "err":
			known = append(known, a.Value.String())
		default:
			known = append(known, a.Key+" "+a.Value.String())
		}
	}
	text := MessageOf(e).Text
	if len(known) > 0 {
		text += ": " + strings.Join(known, ", ")
	}
	return text
}

// Attrs returns what an event knows: its fields, by their names in snake case. Empty texts,
// nil lists and maps, nil errors and zero times are left out.
func Attrs(e observe.Event) []slog.Attr { return fields(nil, reflect.ValueOf(e).Elem()) }

func fields(attrs []slog.Attr, of reflect.Value) []slog.Attr {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		switch {
		case field.Tag.Get("log") == "-":
		case field.Anonymous && field.Type.Kind() == reflect.Interface:
			if !v.IsNil() {
				attrs = fields(attrs, reflect.ValueOf(v.Interface().(observe.Subject).About()))
			}
		case field.Anonymous:
			attrs = fields(attrs, v)
		case known(v):
			attrs = append(attrs, slog.Attr{Key: snake(field.Name), Value: value(v)})
		}
	}
	return attrs
}

// known reports whether a field is an attribute. Zero is a number like others.
func known(v reflect.Value) bool {
	switch v.Interface().(type) {
	case time.Duration:
		return true
	case fmt.Stringer: // a time, or a hook
		return !v.IsZero()
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
		return !v.IsZero()
	}
	return true
}

func value(v reflect.Value) slog.Value {
	switch known := v.Interface().(type) {
	case time.Duration, time.Time:
		return slog.AnyValue(known)
	case fmt.Stringer:
		return slog.StringValue(known.String())
	}
	switch v.Kind() {
	case reflect.String:
		return slog.StringValue(v.String())
	case reflect.Map:
		return group(v)
	}
	return slog.AnyValue(v.Interface())
}

func group(m reflect.Value) slog.Value {
	var attrs []slog.Attr
	for _, key := range slices.SortedFunc(maps.Keys(keys(m)), strings.Compare) {
		attrs = append(attrs, slog.Attr{Key: key, Value: value(m.MapIndex(reflect.ValueOf(key)))})
	}
	return slog.GroupValue(attrs...)
}

func keys(m reflect.Value) map[string]bool {
	all := map[string]bool{}
	for _, k := range m.MapKeys() {
		all[k.String()] = true
	}
	return all
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
