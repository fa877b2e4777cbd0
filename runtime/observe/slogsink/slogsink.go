// Package slogsink writes events to a log. It has every message that operators see.
package slogsink

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Sink is an [observe.Observer] that writes to a log.
type Sink struct {
	log   *slog.Logger
	types map[reflect.Type]eventType // of all events; it does not change
}

// eventType is a type of events in the log.
type eventType struct {
	Message
	fields []field
}

// New returns a sink for this log.
func New(log *slog.Logger) *Sink {
	s := &Sink{log, make(map[reflect.Type]eventType, len(Messages))}
	for _, m := range Messages {
		t := reflect.TypeOf(m.Event)
		s.types[t] = eventType{m, fieldsOf(t.Elem())}
	}
	return s
}

// Wants implements observe.Observer.
func (s *Sink) Wants(k observe.Kind) bool {
	level := slog.LevelDebug // of all frequent events but plugins' own lines
	if k >= observe.KindPluginLog(observe.Debug) {
		level = levelOf(observe.Level(k - observe.KindPluginLog(observe.Debug)))
	}
	return s.log.Enabled(context.Background(), level)
}

// Observe implements observe.Observer. There is no line for a call that an open circuit
// breaker did not let through: the breaker's own events tell of that.
func (s *Sink) Observe(ctx context.Context, e observe.Event) {
	if called, ok := e.(*observe.HookCalled); ok && (called.Outcome == observe.NotCalled || !s.Wants(observe.KindHookCalled)) {
		return
	}
	t := s.types[reflect.TypeOf(e)] // a test holds that all are there
	if level := t.levelOf(e); s.log.Enabled(ctx, level) {
		s.log.LogAttrs(ctx, level, t.Text, attrsOf(t.fields, reflect.ValueOf(e).Elem(), make([]slog.Attr, 0, 16))...)
	}
}

// levelOf is the level of an event with this message.
func (m Message) levelOf(e observe.Event) slog.Level {
	switch e := e.(type) {
	case *observe.PluginLog:
		return levelOf(e.Level)
	case *observe.GenerationActive:
		if len(e.Refusing) > 0 {
			return slog.LevelWarn
		}
	}
	return m.Level
}

func levelOf(l observe.Level) slog.Level {
	return [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[l]
}

func messageOf(e observe.Event) Message {
	return Messages[slices.IndexFunc(Messages, func(m Message) bool { return reflect.TypeOf(m.Event) == reflect.TypeOf(e) })]
}

// Warns reports whether an event is an error or a warning for operators.
func Warns(e observe.Event) bool { return messageOf(e).levelOf(e) >= slog.LevelWarn }

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
	text := messageOf(e).Text
	if len(known) > 0 {
		text += ": " + strings.Join(known, ", ")
	}
	return text
}
