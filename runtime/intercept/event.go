package intercept

import (
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// maxHandles is how many objects of the store one event hands out.
const maxHandles = 4096

// Node is what plugins may know of the node.
type Node struct {
	CgroupVersion  int // 1 or 2; 0 where the proxy has no cgroup file system
	RuntimeName    string
	RuntimeVersion string
}

// Load returns n: it is what is known now, for as long as that does not change.
func (n *Node) Load() *Node { return n }

// event is one hook of one call. It implements plugin.Subject and belongs to
// the goroutine that runs the call.
type event struct {
	hook      abi.Hook
	at        time.Time
	node      *Node
	store     *pods.Store
	pod       *podView       // nil if it is not known
	container *containerView // nil in a hook of a pod
	places    []place        // where changes go
	handles   []object       // handle abi.FirstHandle+i stands for handles[i]
}

// object is what a number of the ABI stands for: one of the two.
type object struct {
	pod       *podView
	container *containerView
}

var _ plugin.Subject = (*event)(nil)

func (e *event) Hook() abi.Hook  { return e.hook }
func (e *event) Time() time.Time { return e.at }

// LogValue names the pod and the container.
func (e *event) LogValue() slog.Value {
	var attrs []slog.Attr
	if e.pod != nil {
		meta := e.pod.config.GetMetadata()
		attrs = append(attrs, slog.String("pod", meta.GetNamespace()+"/"+meta.GetName()))
	}
	if e.container != nil {
		attrs = append(attrs, slog.String("container", e.container.config.GetMetadata().GetName()))
	}
	return slog.GroupValue(attrs...)
}

// Int64 implements plugin.Event.
func (e *event) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	if o == abi.Event || o == abi.Node {
		return e.ownInt64(o, f)
	}
	return answer(e.object(o), f, (*podView).int64, (*containerView).int64)
}

func (e *event) ownInt64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	switch {
	case o == abi.Event && f == abi.EventHook:
		return int64(e.hook), abi.OK
	case o == abi.Event && f == abi.EventTime:
		return e.at.UnixNano(), abi.OK
	case o == abi.Node && f == abi.NodeCgroupVersion:
		return int64(e.node.CgroupVersion), abi.OK
	}
	return 0, abi.NotFound
}

// Text implements plugin.Event.
func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	switch {
	case o == abi.Node && f == abi.NodeRuntimeName:
		return e.node.RuntimeName, abi.OK
	case o == abi.Node && f == abi.NodeRuntimeVersion:
		return e.node.RuntimeVersion, abi.OK
	}
	return answer(e.object(o), f, (*podView).text, (*containerView).text)
}

// Entries implements plugin.Event.
func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	return answer(e.object(o), f, (*podView).entries, (*containerView).entries)
}

// Lookup implements plugin.Event.
func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	obj := e.object(o)
	switch {
	case obj.pod != nil:
		return found(obj.pod.lookup(f, key))
	case obj.container != nil:
		return found(obj.container.lookup(f, key))
	}
	return "", abi.NotFound
}

// answer asks whichever of the two the object is.
func answer[T any](o object, f abi.Field, pod func(*podView, abi.Field) (T, bool), container func(*containerView, abi.Field) (T, bool)) (T, abi.Errno) {
	switch {
	case o.pod != nil:
		return found(pod(o.pod, f))
	case o.container != nil:
		return found(container(o.container, f))
	}
	var none T
	return none, abi.NotFound
}

func found[T any](v T, ok bool) (T, abi.Errno) {
	if !ok {
		return v, abi.NotFound
	}
	return v, abi.OK
}

func (e *event) object(o abi.Object) object {
	switch {
	case o == abi.Pod:
		return object{pod: e.pod}
	case o == abi.Container:
		return object{container: e.container}
	case o >= abi.FirstHandle && int(o-abi.FirstHandle) < len(e.handles):
		return e.handles[o-abi.FirstHandle]
	}
	return object{}
}

// Find implements plugin.Event.
func (e *event) Find(kind int32, name string) (abi.Object, abi.Errno) {
	if kind == abi.ByContainerID {
		c, ok := e.store.Container(name)
		if !ok {
			return 0, abi.NotFound
		}
		return e.handle(object{container: viewContainer(c)})
	}
	p, ok := e.findPod(kind, name)
	if !ok {
		return 0, abi.NotFound
	}
	return e.handle(object{pod: viewPod(p)})
}

// Containers implements plugin.Event.
func (e *event) Containers(pod abi.Object) ([]abi.Object, abi.Errno) {
	p := e.object(pod).pod
	if p == nil {
		return nil, abi.NotFound
	}
	var handles []abi.Object
	for _, c := range e.store.Containers(p.id) {
		h, errno := e.handle(object{container: viewContainer(c)})
		if errno != abi.OK {
			return nil, errno
		}
		handles = append(handles, h)
	}
	return handles, abi.OK
}

func (e *event) handle(o object) (abi.Object, abi.Errno) {
	if len(e.handles) >= maxHandles {
		return 0, abi.Limit
	}
	e.handles = append(e.handles, o)
	return abi.FirstHandle + abi.Object(len(e.handles)-1), abi.OK
}

func (e *event) findPod(kind int32, name string) (pods.Pod, bool) {
	switch kind {
	case abi.ByPodID:
		return e.store.Pod(name)
	case abi.ByPodUID:
		return e.store.FindPodByUID(name)
	case abi.ByPodName:
		namespace, pod, _ := strings.Cut(name, "/")
		return e.store.FindPodByName(namespace, pod)
	}
	return pods.Pod{}, false
}
