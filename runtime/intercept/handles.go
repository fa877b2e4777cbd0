package intercept

import (
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// maxHandles is how many objects of the store one event hands out.
const maxHandles = 4096

// handles are the objects of the store that an event handed out: each once, so
// that a second look-up finds what the first one changed.
type handles struct {
	all   []crifield.Object        // abi.FirstHandle+i stands for all[i]
	known map[string]abi.Object    // by nameOfObject
	pods  map[string]*crifield.Pod // those by which matches were judged, by id
}

func (h *handles) object(o abi.Object) crifield.Object {
	if i := int(o) - int(abi.FirstHandle); i >= 0 && i < len(h.all) {
		return h.all[i]
	}
	return crifield.Object{}
}

// podOf returns the ID of the pod that a handle is, or is in; "" if it is none.
func (h *handles) podOf(handle abi.Object) string {
	switch o := h.object(handle); {
	case o.Pod != nil:
		return o.Pod.ID
	case o.Container != nil:
		return o.Container.PodID
	}
	return ""
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
	pod, container := nameOfObject(crifield.Object{Pod: e.pod}), nameOfObject(crifield.Object{Container: e.container})
	return name != "" && (name == pod || name == container)
}

// Within implements plugin.Event.
func (e *event) Within(handle abi.Object, match *abi.Match) bool {
	return e.within(e.handles.object(handle), match)
}

// within reports whether the match accepts a pod or container as the store has it now.
func (e *event) within(o crifield.Object, match *abi.Match) bool {
	switch {
	case match == nil:
		return true
	case o.Pod != nil:
		return accepts(match, e.latest(o.Pod.ID), nil)
	case o.Container != nil:
		return accepts(match, e.latest(o.Container.PodID), o.Container)
	}
	return false
}

// accepts reports whether the match accepts a pod that is known, or a container of it.
func accepts(match *abi.Match, pod *crifield.Pod, c *crifield.Container) bool {
	return match == nil || pod != nil && plugin.Accepts(match, matched{pod, c})
}

// latest returns a pod as the store has it, or had it last in this event: what a plugin found does not leave its
// match because it ends. The event's own is as its hook was matched. It is nil for a pod that the store did not have.
func (e *event) latest(id string) *crifield.Pod {
	if e.pod != nil && e.pod.ID == id {
		return e.pod
	}
	if p, ok := e.host.Store.Pod(id); ok {
		if e.handles.pods == nil {
			e.handles.pods = map[string]*crifield.Pod{}
		}
		e.handles.pods[id] = crifield.PodOf(p)
	}
	return e.handles.pods[id]
}

// matched is a pod, and a container of it or nil. It implements plugin.Matched.
type matched struct {
	pod       *crifield.Pod
	container *crifield.Container
}

func (m matched) object(o abi.Object) crifield.Object {
	if o == abi.Container {
		return crifield.Object{Container: m.container}
	}
	return crifield.Object{Pod: m.pod}
}

// Text implements plugin.Matched.
func (m matched) Text(o abi.Object, f abi.Field) (string, abi.Errno) { return m.object(o).Text(f) }

// Lookup implements plugin.Matched.
func (m matched) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	return m.object(o).Lookup(f, key)
}

// Find implements plugin.Event.
func (e *event) Find(kind int32, name string, match *abi.Match) (abi.Object, abi.Errno) {
	var (
		p  pods.Pod
		c  pods.Container
		ok bool
	)
	switch kind {
	case abi.ByContainerID:
		c, ok = e.host.Store.Container(name)
	case abi.ByPodID:
		p, ok = e.host.Store.Pod(name)
	case abi.ByPodUID:
		p, ok = e.host.Store.FindPodByUID(name)
	case abi.ByPodName:
		namespace, pod, _ := strings.Cut(name, "/")
		p, ok = e.host.Store.FindPodByName(namespace, pod)
	}
	o := crifield.Object{Pod: crifield.PodOf(p)}
	if kind == abi.ByContainerID {
		o = crifield.Object{Container: crifield.ContainerOf(c)}
	}
	if !ok || !e.within(o, match) {
		return 0, abi.NotFound
	}
	return e.handles.of(o)
}

// Pods implements plugin.Event.
func (e *event) Pods(namespace string, match *abi.Match) (list []abi.Object, through int, errno abi.Errno) {
	var objects []crifield.Object
	for _, p := range e.round.order(e.host.Store.Pods()) {
		if namespace != "" && p.Config.GetMetadata().GetNamespace() != namespace {
			continue
		}
		through++
		if o := (crifield.Object{Pod: crifield.PodOf(p)}); e.within(o, match) {
			objects = append(objects, o)
		}
	}
	list, errno = e.hand(objects)
	return list, through, errno
}

// Containers implements plugin.Event.
func (e *event) Containers(of abi.Object, match *abi.Match) (list []abi.Object, through int, errno abi.Errno) {
	var ids []string // of pods
	if p := e.object(of).Pod; p != nil {
		ids = []string{p.ID}
	} else if of == abi.Node {
		for _, p := range e.round.order(e.host.Store.Pods()) {
			ids = append(ids, p.ID)
		}
	} else {
		return nil, 0, abi.NotFound
	}
	var objects []crifield.Object
	for _, id := range ids {
		var pod *crifield.Pod
		if match != nil {
			pod = e.latest(id)
		}
		for _, c := range e.host.Store.Containers(id) {
			through++
			if c := crifield.ContainerOf(c); accepts(match, pod, c) {
				objects = append(objects, crifield.Object{Container: c})
			}
		}
	}
	list, errno = e.hand(objects)
	return list, through, errno
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
