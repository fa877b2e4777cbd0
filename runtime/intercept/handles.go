package intercept

import (
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// maxHandles is how many objects of the store one event hands out.
const maxHandles = 4096

// handles are the objects of the store that an event handed out: each once, so
// that a second look-up finds what the first one changed.
type handles struct {
	all   []crifield.Object     // abi.FirstHandle+i stands for all[i]
	known map[string]abi.Object // by nameOfObject
}

func (h *handles) object(o abi.Object) crifield.Object {
	if i := int(o) - int(abi.FirstHandle); i >= 0 && i < len(h.all) {
		return h.all[i]
	}
	return crifield.Object{}
}

func (h *handles) of(o crifield.Object) (abi.Object, abi.Errno) {
	name := nameOfObject(o)
	if handle, ok := h.known[name]; ok {
		return handle, abi.OK
	}
	if len(h.all) >= maxHandles {
		return 0, abi.Limit
	}
	if h.known == nil {
		h.known = map[string]abi.Object{}
	}
	handle := abi.FirstHandle + abi.Object(len(h.all))
	h.all, h.known[name] = append(h.all, o), handle
	return handle, abi.OK
}

// nameOfObject tells pods and containers of a node apart.
func nameOfObject(o crifield.Object) string {
	switch {
	case o.Pod != nil:
		return "pod " + o.Pod.ID
	case o.Container != nil:
		return "container " + o.Container.ID
	}
	return ""
}

// Kind implements plugin.Event.
func (e *event) Kind(o abi.Object) abi.Object {
	switch obj := e.handles.object(o); {
	case obj.Pod != nil:
		return abi.Pod
	case obj.Container != nil:
		return abi.Container
	}
	return o
}

// Own implements plugin.Event.
func (e *event) Own(o abi.Object) bool {
	name := nameOfObject(e.handles.object(o))
	return name != "" && (name == nameOfObject(crifield.Object{Pod: e.pod}) || name == nameOfObject(crifield.Object{Container: e.container}))
}

// Find implements plugin.Event.
func (e *event) Find(kind int32, name string) (abi.Object, abi.Errno) {
	if kind == abi.ByContainerID {
		c, ok := e.host.Store.Container(name)
		if !ok {
			return 0, abi.NotFound
		}
		return e.handles.of(crifield.Object{Container: crifield.ContainerOf(c)})
	}
	p, ok := e.findPod(kind, name)
	if !ok {
		return 0, abi.NotFound
	}
	return e.handles.of(crifield.Object{Pod: crifield.PodOf(p)})
}

func (e *event) findPod(kind int32, name string) (pods.Pod, bool) {
	switch kind {
	case abi.ByPodID:
		return e.host.Store.Pod(name)
	case abi.ByPodUID:
		return e.host.Store.FindPodByUID(name)
	case abi.ByPodName:
		namespace, pod, _ := strings.Cut(name, "/")
		return e.host.Store.FindPodByName(namespace, pod)
	}
	return pods.Pod{}, false
}

// Pods implements plugin.Event.
func (e *event) Pods(namespace string) ([]abi.Object, abi.Errno) {
	var objects []crifield.Object
	for _, p := range e.host.Store.Pods() {
		if namespace == "" || p.Config.GetMetadata().GetNamespace() == namespace {
			objects = append(objects, crifield.Object{Pod: crifield.PodOf(p)})
		}
	}
	return e.hand(objects)
}

// Containers implements plugin.Event.
func (e *event) Containers(pod abi.Object) ([]abi.Object, abi.Errno) {
	var of []pods.Pod
	if p := e.object(pod).Pod; p != nil {
		of = []pods.Pod{{ID: p.ID}}
	} else if pod == abi.Node {
		of = e.host.Store.Pods()
	} else {
		return nil, abi.NotFound
	}
	var objects []crifield.Object
	for _, p := range of {
		for _, c := range e.host.Store.Containers(p.ID) {
			objects = append(objects, crifield.Object{Container: crifield.ContainerOf(c)})
		}
	}
	return e.hand(objects)
}

// hand hands out all of them, in their order.
func (e *event) hand(objects []crifield.Object) ([]abi.Object, abi.Errno) {
	list := make([]abi.Object, 0, len(objects))
	for _, o := range objects {
		handle, errno := e.handles.of(o)
		if errno != abi.OK {
			return nil, errno
		}
		list = append(list, handle)
	}
	return list, abi.OK
}
