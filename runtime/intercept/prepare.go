package intercept

import (
	"context"
	"errors"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

var errUnknownObject = errors.New("neither the store nor the runtime can tell about the pod or container")

// prepare makes the call's event and lays earlier changes of the pod over the
// request. The event stays nil if the call's object is not known, or if nothing
// needs it. It fails only when ctx is done.
func (c *call) prepare(ctx context.Context) error {
	switch m, carried := &c.method, c.method.Carries(c.req); {
	case carried.Container != nil:
		c.event = c.createEvent(ctx, carried)
	case m.Effect == cri.Updates && m.Object == abi.Container:
		c.event = c.updateEvent(ctx, carried)
	case m.Effect == cri.Updates:
		c.event = c.updatePodEvent(ctx, carried)
	case m.Effect == cri.Makes:
		c.Enforcer.Reuse(enforce.UID(*carried.Pod))
		c.event = c.newEvent(crifield.NewPod("", *carried.RuntimeHandler, made(carried.Pod)), nil)
	case m.Object == abi.Event:
		c.event = c.imageEvent(carried)
	case m.Object == abi.Container:
		c.event = c.containerEvent(ctx, cri.ContainerID(c.req))
	default:
		c.event = c.podEvent(ctx, cri.PodID(c.req))
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}

// newEvent returns the event of the call's pre hook.
func (c *call) newEvent(pod *crifield.Pod, container *crifield.Container) *event {
	e := new(event)
	c.begin(e, c.method.Pre, pod)
	e.req, e.container = c.req, container
	return e
}

// begin fills in an event of a hook, about a pod or nil.
func (i *interceptor) begin(e *event, hook abi.Hook, pod *crifield.Pod) {
	e.hook, e.at, e.host, e.node, e.pod = hook, time.Now(), i, i.Node.Load(), pod
}

// key is that of the object whose post hooks must end before the event's pre hook.
func (e *event) key() string {
	switch {
	case e.container != nil && e.container.ID != "":
		return e.container.ID
	case e.hook.Info().Object == abi.Event:
		name, _ := e.Text(abi.Event, abi.EventImage)
		return "image " + name
	case e.pod.ID == "": // while it is made, and when it was not
		return "pod " + enforce.SandboxName(e.pod.Config)
	}
	return e.pod.ID
}

// made returns a message of a request, which has one from then on.
func made[M any](m **M) *M {
	if *m == nil {
		*m = new(M)
	}
	return *m
}

// imageEvent tells of an image, and of the pod that it is pulled for, if the
// request says so.
func (c *call) imageEvent(carried cri.Carried) *event {
	if carried.Pod == nil || *carried.Pod == nil {
		return c.newEvent(nil, nil)
	}
	pod := crifield.NewPod("", "", *carried.Pod)
	meta := pod.Config.GetMetadata()
	if known, ok := c.Store.FindPodByUID(meta.GetUid()); ok && known.Config.GetMetadata().GetAttempt() == meta.GetAttempt() {
		pod.ID, pod.RuntimeHandler, pod.State = known.ID, known.RuntimeHandler, crifield.PodState(known.State)
	}
	return c.newEvent(pod, nil)
}

// ownedEvent is an event with its own pod and container, in one piece.
type ownedEvent struct {
	event
	pod       crifield.Pod
	container crifield.Container
}

// createEvent tells of a container that is to be created. The pod's config in
// the request is what counts for the backend, so it is what plugins see.
func (c *call) createEvent(ctx context.Context, carried cri.Carried) *event {
	e, config := new(ownedEvent), made(carried.Container)
	e.pod.Init(cri.PodID(c.req), "", made(carried.Pod))
	if known, ok := c.pod(ctx, e.pod.ID); ok {
		e.pod.ID, e.pod.RuntimeHandler, e.pod.State = known.ID, known.RuntimeHandler, crifield.PodState(known.State)
		c.dirty = overlay(e.pod.Config, known)
	}
	e.container = crifield.Container{
		PodID: e.pod.ID, Config: config, Annotations: config.GetAnnotations(),
		Resources: crifield.Resources{Now: config.GetLinux().GetResources()},
	}
	c.begin(&e.event, c.method.Pre, &e.pod)
	e.req, e.event.container = c.req, &e.container
	return &e.event
}

// containerEvent tells of a container that exists. With no hook to tell, what
// the store lacks is not asked of the backend.
func (c *call) containerEvent(ctx context.Context, id string) *event {
	container, ok := c.container(ctx, id)
	if !ok {
		return nil
	}
	e := c.podEvent(ctx, container.PodID)
	if e != nil {
		e.container = crifield.ContainerOf(container)
	}
	return e
}

// container returns a container of the store, or of the backend if the store lacks it or knows it
// by a list alone, and a hook is to be told of it, or its cgroup may hold what is in an update's way.
func (c *call) container(ctx context.Context, id string) (pods.Container, bool) {
	container, ok := c.Store.Container(id)
	described := ok && !container.ByListAlone()
	inTheWay := c.method.Effect == cri.Updates && c.Cgroups != nil
	wanted := c.Hooked || inTheWay
	if described || c.unread || !wanted {
		return container, ok
	}
	container, ok = readThrough(ctx, c, id, c.Store.ReadContainer)
	c.unread = !ok || container.ByListAlone()
	return container, ok
}

// podEvent is the same for a pod.
func (c *call) podEvent(ctx context.Context, id string) *event {
	pod, ok := c.Store.Pod(id)
	if (!ok || pod.ByListAlone()) && c.Hooked {
		pod, ok = c.pod(ctx, id)
	}
	if !ok {
		return nil
	}
	return c.newEvent(crifield.PodOf(pod), nil)
}

// pod returns a pod of the store, or of the backend if the store lacks it or knows it by a list alone.
func (c *call) pod(ctx context.Context, id string) (p pods.Pod, ok bool) {
	if p, ok = c.Store.Pod(id); !ok || p.ByListAlone() {
		p, ok = readThrough(ctx, c, id, c.Store.ReadPod)
	}
	return p, ok
}

// readThrough asks the backend about what the store does not know, or by a list alone.
func readThrough[T any](ctx context.Context, c *call, id string, read func(context.Context, pods.Backend, string) (T, error)) (T, bool) {
	ctx, cancel := context.WithTimeout(ctx, readThroughTime)
	defer cancel()
	v, err := read(ctx, c.Backend, id)
	c.missing = pods.Gone(err)
	if err != nil && !c.missing {
		c.Observer.Observe(ctx, &observe.ReadThroughFailed{Method: c.method.Name, ID: id, Err: err})
	}
	return v, err == nil
}

// overlay puts what plugins changed of the pod at RunPodSandbox into the pod's
// config as kubelet sends it again with each container, and reports whether
// that changed anything. After a restart of the proxy nobody knows what kubelet
// asked for at first: labels and annotations then stay as kubelet sends them, and
// only a cgroup parent below kubelet's is taken for a plugin's.
func overlay(config *runtimeapi.PodSandboxConfig, pod pods.Pod) bool {
	if pod.Unchanged {
		return false
	}
	kubelets, parent := config.GetLinux().GetCgroupParent(), pod.Config.GetLinux().GetCgroupParent()
	changed, moved := false, plugin.BelowParent(kubelets, parent) && !plugin.BelowParent(parent, kubelets)
	if pod.Requested != nil {
		moved = parent != pod.Requested.GetLinux().GetCgroupParent()
		changed = overlayMap(&config.Labels, pod.Requested.GetLabels(), pod.Config.GetLabels())
		changed = overlayMap(&config.Annotations, pod.Requested.GetAnnotations(), pod.Config.GetAnnotations()) || changed
	}
	moved = moved && parent != "" && parent != kubelets
	if moved {
		made(&config.Linux).CgroupParent = parent
	}
	return changed || moved
}

func overlayMap(config *map[string]string, asked, sent map[string]string) (changed bool) {
	for k, v := range sent {
		if was, known := asked[k]; known && was == v {
			continue
		}
		if now, present := (*config)[k]; present && now == v {
			continue
		}
		if *config == nil {
			*config = map[string]string{}
		}
		(*config)[k] = v
		changed = true
	}
	for k := range asked {
		if _, kept := sent[k]; kept {
			continue
		}
		if _, present := (*config)[k]; present {
			delete(*config, k)
			changed = true
		}
	}
	return changed
}
