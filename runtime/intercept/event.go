package intercept

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// event is one hook of one call, or one apart from calls. It implements
// plugin.Subject and belongs to the goroutine that runs it.
type event struct {
	hook      abi.Hook
	at        time.Time
	about     about
	node      *Node
	store     *pods.Store
	backend   pods.Backend
	cgroups   *cgroup.FS     // nil without a cgroup file system
	pod       *podView       // nil if there is none or it is not known
	container *containerView // nil in a hook of a pod
	places    []place        // where changes go
	handles   handles        // what the event handed out
	shown     bool           // Options.ShowSecrets
}

// object is what a number of the ABI stands for: one of these, or nothing.
type object struct {
	about     *about
	node      *Node
	pod       *podView
	container *containerView
}

var _ plugin.Subject = (*event)(nil)

func (e *event) Hook() abi.Hook  { return e.hook }
func (e *event) Time() time.Time { return e.at }

// LogValue names the pod and the container, or the image.
func (e *event) LogValue() slog.Value {
	var attrs []slog.Attr
	if e == nil {
		return slog.GroupValue()
	}
	if e.pod != nil {
		meta := e.pod.config.GetMetadata()
		attrs = append(attrs, slog.String("pod", meta.GetNamespace()+"/"+meta.GetName()))
	}
	if e.container != nil {
		attrs = append(attrs, slog.String("container", e.container.config.GetMetadata().GetName()))
	}
	if name, ok := e.about.text(abi.EventImage); ok {
		attrs = append(attrs, slog.String("image", name))
	}
	return slog.GroupValue(attrs...)
}

func (e *event) object(o abi.Object) object {
	switch o {
	case abi.Event:
		return object{about: &e.about}
	case abi.Pod:
		return object{pod: e.pod}
	case abi.Container:
		return object{container: e.container}
	case abi.Node:
		return object{node: e.node}
	}
	return e.handles.object(o)
}

// scalars are the numbers and texts of an object.
type scalars interface {
	int64(abi.Field) (int64, bool)
	text(abi.Field) (string, bool)
	// untoldField reports whether nobody told the field: if it is zero or empty, its
	// value is not known.
	untoldField(abi.Field) bool
}

// scalars returns those of an object; nil if it is none.
func (e *event) scalars(o abi.Object) scalars {
	switch {
	case o == abi.Container && e.container != nil:
		return e.container
	case o == abi.Pod && e.pod != nil:
		return e.pod
	case o == abi.Event:
		return e
	case o == abi.Node && e.node != nil:
		return e.node
	case o >= abi.FirstHandle:
		return e.handles.object(o).scalars()
	}
	return nil
}

// scalars are those of a pod or a container that was handed out.
func (o object) scalars() scalars {
	switch {
	case o.pod != nil:
		return o.pod
	case o.container != nil:
		return o.container
	}
	return nil
}

// Int64 implements plugin.Event.
func (e *event) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	s := e.scalars(o)
	if s == nil {
		return 0, abi.NotFound
	}
	n, ok := s.int64(f)
	if n == 0 && s.untoldField(f) {
		return 0, abi.Unsupported
	}
	return found(n, ok)
}

// Text implements plugin.Event.
func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	s := e.scalars(o)
	if s == nil {
		return "", abi.NotFound
	}
	text, ok := s.text(f)
	if text == "" && s.untoldField(f) {
		return "", abi.Unsupported
	}
	return found(text, ok)
}

// int64 is for the event's own fields, as an object.
func (e *event) int64(f abi.Field) (int64, bool) {
	switch f {
	case abi.EventHook:
		return int64(e.hook), true
	case abi.EventTime:
		return e.at.UnixNano(), true
	}
	return e.about.int64(f)
}

func (e *event) untoldField(abi.Field) bool { return false }

func (e *event) text(f abi.Field) (string, bool) {
	if f == abi.EventMethod {
		method := e.hook.Info().Method
		return method, method != ""
	}
	return e.about.text(f)
}

// Entries implements plugin.Event.
func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	m := e.object(o).maps()
	if m == nil {
		return nil, abi.NotFound
	}
	if e.object(o).size(f) > abi.MaxEntries {
		return nil, abi.TooLarge
	}
	entries, ok := m.entries(f)
	if ok && m.untoldField(f) && empty(entries) {
		return nil, abi.Unsupported
	}
	return found(entries, ok)
}

func empty(entries iter.Seq2[string, string]) bool {
	for range entries {
		return false
	}
	return true
}

// mapFields are the fields of a pod or a container that are maps.
type mapFields interface {
	scalars
	entries(abi.Field) (iter.Seq2[string, string], bool)
	lookup(f abi.Field, key string) (string, bool)
}

func (o object) maps() mapFields {
	switch {
	case o.pod != nil:
		return o.pod
	case o.container != nil:
		return o.container
	}
	return nil
}

// size is how many entries or elements a field has that a message may have any number of.
func (o object) size(f abi.Field) int {
	switch {
	case o.pod != nil:
		m, _ := o.pod.strings(f)
		return len(m)
	case o.container != nil:
		return o.container.size(f)
	}
	return 0
}

// Lookup implements plugin.Event.
func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	m := e.object(o).maps()
	if m == nil {
		return "", abi.NotFound
	}
	v, ok := m.lookup(f, key)
	if !ok && m.untoldField(f) {
		return "", abi.Unsupported
	}
	return found(v, ok)
}

// List implements plugin.Event.
func (e *event) List(o abi.Object, f abi.Field) ([]string, abi.Errno) {
	switch obj := e.object(o); {
	case obj.size(f) > abi.MaxEntries:
		return nil, abi.TooLarge
	case obj.container != nil:
		list, ok := obj.container.list(f)
		if len(list) == 0 && obj.container.untoldField(f) {
			return nil, abi.Unsupported
		}
		return found(list, ok)
	case obj.node != nil:
		return found(obj.node.list(f))
	case obj.about != nil:
		return found(obj.about.list(f))
	}
	return nil, abi.NotFound
}

func found[T any](v T, ok bool) (T, abi.Errno) {
	if !ok {
		return v, abi.NotFound
	}
	return v, abi.OK
}

// ReadFile implements plugin.Event.
func (e *event) ReadFile(ctx context.Context, o abi.Object, file string) (string, abi.Errno) {
	obj := e.object(o)
	switch {
	case o == abi.Event || o == abi.Node:
		return "", abi.Invalid
	case obj.pod == nil && (obj.container == nil || obj.container.id == ""): // it is yet to be made
		return "", abi.NotFound
	case e.cgroups == nil:
		return "", abi.Unsupported
	}
	ctx, cancel := context.WithTimeout(ctx, locateTime)
	defer cancel()
	group, err := locator{e.store, e.backend, e.cgroups}.group(ctx, obj)
	if err != nil {
		return "", plugin.ErrnoOf(err)
	}
	value, err := e.cgroups.Get(group, file)
	return value, plugin.ErrnoOf(err)
}
