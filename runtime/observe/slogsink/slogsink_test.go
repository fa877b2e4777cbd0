package slogsink_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/testdata/doctable"
)

var update = flag.Bool("update", false, "write the table of messages into docs/messages.md")

// eventTypes are the names of all types of events, as the source of package observe has them.
func eventTypes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]bool{"occurrence": true}
	for before := 0; before != len(events); { // until no type is another one's
		before = len(events)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && isEvent(spec.Type, events) {
					events[spec.Name.Name] = true
				}
				return true
			})
		}
	}
	maps.DeleteFunc(events, func(name string, _ bool) bool { return !ast.IsExported(name) }) // what events are made of
	return slices.Sorted(maps.Keys(events))
}

// isEvent reports whether a type is defined as an event, or embeds one.
func isEvent(e ast.Expr, events map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return events[e.Name]
	case *ast.StructType:
		return slices.ContainsFunc(e.Fields.List, func(f *ast.Field) bool { return f.Names == nil && isEvent(f.Type, events) })
	}
	return false
}

func nameOf(e observe.Event) string { return reflect.TypeOf(e).Elem().Name() }

// A type of event without a message would be lost.
func TestEveryEventHasOneMessage(t *testing.T) {
	var have []string
	texts := map[string]bool{}
	for _, m := range slogsink.Messages {
		have = append(have, nameOf(m.Event))
		if texts[m.Text] {
			t.Errorf("two types of events have the message %q", m.Text)
		}
		texts[m.Text] = true
	}
	slices.Sort(have)
	if want := eventTypes(t); !slices.Equal(have, want) || len(want) < 50 {
		t.Errorf("the messages are of\n%v\nand the events are\n%v", have, want)
	}
}

// whole returns an event of the same type that has a value in each field.
func whole(t *testing.T, e observe.Event) observe.Event {
	t.Helper()
	v := reflect.New(reflect.TypeOf(e).Elem())
	fill(t, v.Elem())
	return v.Interface().(observe.Event)
}

func fill(t *testing.T, of reflect.Value) {
	t.Helper()
	for i := range of.NumField() {
		v := of.Field(i)
		if !v.CanSet() { // the mark of an event
			continue
		}
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			continue
		case abi.Hook:
			v.Set(reflect.ValueOf(abi.PreCreateContainer))
		}
		switch v.Kind() {
		case reflect.Struct:
			fill(t, v)
		case reflect.Interface:
			if v.Type() == reflect.TypeFor[error]() {
				v.Set(reflect.ValueOf(errors.New("out of cheese")))
			} else {
				v.Set(reflect.ValueOf(observe.Object{Pod: "web"}))
			}
		case reflect.String:
			v.SetString("text")
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"a", "b"}))
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Map:
			m := reflect.MakeMap(v.Type())
			inner := reflect.New(v.Type().Elem()).Elem()
			if inner.Kind() == reflect.Map {
				inner.Set(reflect.ValueOf(map[string]int64{"n": 1}))
			}
			m.SetMapIndex(reflect.ValueOf("key"), inner)
			v.Set(m)
		}
	}
}

// TestMessages drives every type of event through the sink: its line has the level and the text
// of the table, and an attribute for each field.
func TestMessages(t *testing.T) {
	for _, m := range slogsink.Messages {
		t.Run(nameOf(m.Event), func(t *testing.T) {
			var b bytes.Buffer
			e := whole(t, m.Event)
			slogsink.New(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))).Observe(t.Context(), e)
			var line map[string]any
			if err := json.Unmarshal(b.Bytes(), &line); err != nil {
				t.Fatalf("%q: %v", b.String(), err)
			}
			level := m.Level
			switch e.(type) {
			case *observe.PluginLog:
				level = slog.LevelDebug // of the sample
			case *observe.GenerationActive:
				level = slog.LevelWarn // since the sample names plugins that refuse
			}
			if line["msg"] != m.Text || line["level"] != level.String() {
				t.Errorf("the line is %v", line)
			}
			for _, name := range attributes(t, m.Event) {
				if _, has := line[name]; !has {
					t.Errorf("%s is not in %v", name, line)
				}
			}
			b.Reset()
			slogsink.New(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: level + 1}))).Observe(t.Context(), e)
			if b.Len() > 0 {
				t.Errorf("logged though the level is higher: %s", &b)
			}
		})
	}
}

// attributes are the names of an event's attributes but its object's, which are explained
// before the table.
func attributes(t *testing.T, e observe.Event) (names []string) {
	t.Helper()
	for _, a := range slogsink.Attrs(whole(t, e)) {
		switch a.Key {
		case "namespace", "pod_id", "container", "container_id", "image":
		default:
			names = append(names, a.Key)
		}
	}
	return names
}

func TestAttributesThatAreNotKnownAreLeftOut(t *testing.T) {
	for want, e := range map[string]observe.Event{
		"[plugin=10-a faults=0]":   &observe.BreakerOpened{Plugin: "10-a"},
		"[plugin=10-a hook=Tick]":  &observe.PluginFailed{Plugin: "10-a", Hook: abi.Tick},
		"[plugins=[] refusing=[]]": &observe.GenerationActive{Plugins: []string{}, Refusing: []string{}},
		"[]":                       &observe.NoPlugins{},
		"[hook=Tick pod=web duration=1s fuel=0 host_calls=0 changes=0]": &observe.HookCalled{Hook: abi.Tick, Subject: observe.Object{Pod: "web"}, Start: time.Unix(1, 0), Duration: time.Second},
		"[plugin=p took=0s previous=1]":                                 &observe.PluginReplaced{PluginLoaded: observe.PluginLoaded{Plugin: "p"}, Previous: "1"},
	} {
		if got := fmt.Sprint(slogsink.Attrs(e)); got != want {
			t.Errorf("%s has %s, want %s", nameOf(e), got, want)
		}
	}
}

// TestSpansHaveAUnit in JSON, too.
func TestSpansHaveAUnit(t *testing.T) {
	var b bytes.Buffer
	slogsink.New(slog.New(slog.NewJSONHandler(&b, nil))).Observe(t.Context(), &observe.PluginLoaded{Took: 5151648502})
	if !strings.Contains(b.String(), `"took":"5.151648502s"`) {
		t.Errorf("the line is %s", b.String())
	}
}

func TestLine(t *testing.T) {
	got := slogsink.Line(&observe.CgroupFileFailed{Plugin: "10-a", File: "cpu.max", Err: errors.New("no room")}, "plugin")
	if want := "cgroup file not written: file cpu.max, no room"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A sink wants what its log's level keeps.
func TestWants(t *testing.T) {
	for _, tt := range []struct {
		level slog.Level
		kind  observe.Kind
		want  bool
	}{
		{slog.LevelDebug, observe.KindHookCalled, true},
		{slog.LevelInfo, observe.KindHookCalled, false},
		{slog.LevelInfo, observe.KindPluginLog(observe.Debug), false},
		{slog.LevelInfo, observe.KindPluginLog(observe.Info), true},
		{slog.LevelError, observe.KindPluginLog(observe.Warn), false},
		{slog.LevelError, observe.KindPluginLog(observe.Error), true},
	} {
		s := slogsink.New(slog.New(slog.NewTextHandler(new(bytes.Buffer), &slog.HandlerOptions{Level: tt.level})))
		if got := s.Wants(tt.kind); got != tt.want {
			t.Errorf("at %v it wants kind %d: %v", tt.level, tt.kind, got)
		}
	}
}

// TestTableInTheDocuments compares the table of messages in docs/messages.md with the sink's.
func TestTableInTheDocuments(t *testing.T) {
	doctable.Check(t, *update, "../../../docs/messages.md", "log messages", messageTable(t))
}

func messageTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("Attributes that are not known are left out. Spans of time have a unit, such as `5.15s`. `pod` stands for the attributes of an object: " +
		"`namespace`, `pod`, `pod_id`, `container`, `container_id` and `image`.\n\n")
	b.WriteString("| level | message | attributes | when | what to do |\n|---|---|---|---|---|\n")
	for _, m := range slogsink.Messages {
		names := attributes(t, m.Event)
		for i, name := range names {
			names[i] = "`" + name + "`"
		}
		level := strings.ToLower(m.Level.String())
		if _, plugins := m.Event.(*observe.PluginLog); plugins {
			level = "the plugin's"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", level, m.Text, strings.Join(names, ", "), m.When, m.Do)
	}
	return b.String()
}

// An open breaker lets through no call, and there is no line for each of them.
func TestNoLineForACallOfAnOpenBreaker(t *testing.T) {
	var b bytes.Buffer
	s := slogsink.New(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.Observe(t.Context(), &observe.HookCalled{Plugin: "10-a", Hook: abi.Tick, Outcome: observe.NotCalled, Err: errors.New("it is open")})
	if b.Len() > 0 {
		t.Errorf("logged: %s", &b)
	}
	s.Observe(t.Context(), &observe.HookCalled{Plugin: "10-a", Hook: abi.Tick, Outcome: observe.Failed, Err: errors.New("out of cheese")})
	if !strings.Contains(b.String(), "out of cheese") {
		t.Errorf("the failed call is not logged: %q", b.String())
	}
}

// BenchmarkDebug is the line of a frequent event at level debug.
func BenchmarkDebug(b *testing.B) {
	s := slogsink.New(slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})))
	e := &observe.HookCalled{Plugin: "10-a", Hook: abi.PreCreateContainer, Subject: observe.Object{Namespace: "default", Pod: "web"}, Outcome: observe.OK}
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(b.Context(), e)
	}
}
