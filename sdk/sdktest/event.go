package sdktest

import (
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// object is a pod or container with its fields by number.
type object struct {
	kind       abi.Object
	fields     map[abi.Field]any
	containers []abi.Object // of a pod, as handles
}

// event is a Case as a plugin sees it.
type event struct {
	hook    abi.Hook
	at      time.Time
	objects map[abi.Object]*object
	handles []*object // the store; the first has the handle abi.FirstHandle
}

// Event returns what the case tells a plugin. A field that the ABI does not
// know, or of another type, fails the test.
func (c Case) Event(t testing.TB) plugin.Event {
	t.Helper()
	e := &event{hook: c.Hook, at: c.At, objects: map[abi.Object]*object{}}
	if c.At.IsZero() {
		e.at = time.Unix(0, 0)
	}
	e.objects[abi.Event] = &object{kind: abi.Event, fields: map[abi.Field]any{
		abi.EventHook: int(c.Hook), abi.EventTime: int(e.at.UnixNano()),
	}}
	e.objects[abi.Node] = newObject(t, abi.Node, c.Node)
	own := c.Siblings
	if c.Container != nil {
		e.objects[abi.Container] = newObject(t, abi.Container, c.Container)
		own = append([]Fields{c.Container}, own...)
	}
	if c.Pod != nil {
		e.objects[abi.Pod] = e.store(t, Pod{c.Pod, own})
	}
	for _, p := range c.Pods {
		e.store(t, p)
	}
	return e
}

func newObject(t testing.TB, kind abi.Object, fields Fields) *object {
	t.Helper()
	o := &object{kind: kind, fields: map[abi.Field]any{}}
	for name, v := range fields {
		info, ok := abi.FieldByName(kind, name)
		if !ok {
			t.Fatalf("sdktest: a %v has no field %q", kind, name)
		}
		if !fits(info.Type, v) {
			t.Fatalf("sdktest: %v.%s: a %T is not of the field's type", kind, name, v)
		}
		o.fields[info.Field] = v
	}
	return o
}

func fits(t abi.Type, v any) bool {
	switch v.(type) {
	case int:
		return t == abi.Int64
	case string:
		return t == abi.String
	case map[string]string:
		return t == abi.Map
	}
	return false
}

// store puts a pod and its containers where they can be found.
func (e *event) store(t testing.TB, p Pod) *object {
	t.Helper()
	pod := newObject(t, abi.Pod, p.Fields)
	e.handle(pod)
	for _, fields := range p.Containers {
		container := newObject(t, abi.Container, fields)
		if _, given := container.fields[abi.ContainerPodID]; !given {
			container.fields[abi.ContainerPodID] = pod.text(abi.PodID)
		}
		pod.containers = append(pod.containers, e.handle(container))
	}
	return pod
}

func (e *event) handle(o *object) abi.Object {
	h := abi.FirstHandle + abi.Object(len(e.handles))
	e.handles = append(e.handles, o)
	e.objects[h] = o
	return h
}

func (o *object) text(f abi.Field) string {
	s, _ := o.fields[f].(string)
	return s
}

func (e *event) Hook() abi.Hook  { return e.hook }
func (e *event) Time() time.Time { return e.at }

func (e *event) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	v, errno := field[int](e, o, f)
	return int64(v), errno
}

func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	return field[string](e, o, f)
}

func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	m, errno := field[map[string]string](e, o, f)
	v, ok := m[key]
	if errno == abi.OK && !ok {
		errno = abi.NotFound
	}
	return v, errno
}

func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	m, errno := field[map[string]string](e, o, f)
	if errno != abi.OK {
		return nil, errno
	}
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}, abi.OK
}

// field returns a value of type T. A field of another type is not found.
func field[T any](e *event, o abi.Object, f abi.Field) (v T, errno abi.Errno) {
	obj := e.objects[o]
	if obj == nil {
		return v, abi.NotFound
	}
	v, ok := obj.fields[f].(T)
	if !ok {
		return v, abi.NotFound
	}
	return v, abi.OK
}

func (e *event) Find(kind int32, name string) (abi.Object, abi.Errno) {
	for i, o := range e.handles {
		if o.is(kind, name) {
			return abi.FirstHandle + abi.Object(i), abi.OK
		}
	}
	return 0, abi.NotFound
}

func (o *object) is(kind int32, name string) bool {
	switch kind {
	case abi.ByPodID:
		return o.kind == abi.Pod && o.text(abi.PodID) == name
	case abi.ByPodUID:
		return o.kind == abi.Pod && o.text(abi.PodUID) == name
	case abi.ByPodName:
		return o.kind == abi.Pod && o.text(abi.PodNamespace)+"/"+o.text(abi.PodName) == name
	case abi.ByContainerID:
		return o.kind == abi.Container && o.text(abi.ContainerID) == name
	}
	return false
}

func (e *event) Containers(pod abi.Object) ([]abi.Object, abi.Errno) {
	o := e.objects[pod]
	if o == nil || o.kind != abi.Pod {
		return nil, abi.NotFound
	}
	return o.containers, abi.OK
}
