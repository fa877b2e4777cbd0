package intercept

import (
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
	cgroups   *cgroup.FS     // nil without a cgroup file system
	pod       *podView       // nil if there is none or it is not known
	container *containerView // nil in a hook of a pod
	places    []place        // where changes go
	handles   handles        // what the event handed out
	views     []flat         // encoded, until a change makes them wrong
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
	if s := e.scalars(o); s != nil {
		return found(s.int64(f))
	}
	return 0, abi.NotFound
}

// Text implements plugin.Event.
func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	if s := e.scalars(o); s != nil {
		return found(s.text(f))
	}
	return "", abi.NotFound
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

func (e *event) text(f abi.Field) (string, bool) {
	if f == abi.EventMethod {
		method := e.hook.Info().Method
		return method, method != ""
	}
	return e.about.text(f)
}

// Entries implements plugin.Event.
func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	switch obj := e.object(o); {
	case obj.pod != nil:
		return found(obj.pod.entries(f))
	case obj.container != nil:
		return found(obj.container.entries(f))
	}
	return nil, abi.NotFound
}

// Lookup implements plugin.Event.
func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	switch obj := e.object(o); {
	case obj.pod != nil:
		return found(obj.pod.lookup(f, key))
	case obj.container != nil:
		return found(obj.container.lookup(f, key))
	}
	return "", abi.NotFound
}

// List implements plugin.Event.
func (e *event) List(o abi.Object, f abi.Field) ([]string, abi.Errno) {
	switch obj := e.object(o); {
	case obj.container != nil:
		return found(obj.container.list(f))
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
func (e *event) ReadFile(o abi.Object, file string) (string, abi.Errno) {
	obj := e.object(o)
	switch {
	case o == abi.Event || o == abi.Node:
		return "", abi.Invalid
	case obj.pod == nil && (obj.container == nil || obj.container.id == ""): // it is yet to be made
		return "", abi.NotFound
	case e.cgroups == nil:
		return "", abi.Unsupported
	}
	group, err := obj.group(e.store)
	if err != nil {
		return "", plugin.ErrnoOf(err)
	}
	value, err := e.cgroups.Get(group, file)
	return value, plugin.ErrnoOf(err)
}

// group is the cgroup of a pod, which kubelet made, or of a container: there what
// the runtime says, else where containerd puts it.
func (o object) group(store *pods.Store) (string, error) {
	if o.pod != nil {
		return cgroup.PodPath(o.pod.config.GetLinux().GetCgroupParent())
	}
	record, _ := store.Container(o.container.id)
	if record.CgroupsPath != "" {
		return cgroup.PodPath(record.CgroupsPath)
	}
	parent := record.CgroupParent
	if parent == "" {
		pod, _ := store.Pod(o.container.podID)
		parent = pod.Config.GetLinux().GetCgroupParent()
	}
	return cgroup.ContainerPath(parent, o.container.id)
}
