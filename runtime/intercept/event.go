package intercept

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// event is one hook of one call, or one apart from calls. It implements
// plugin.Subject and belongs to the goroutine that runs it.
type event struct {
	hook      abi.Hook
	at        time.Time
	req, resp proto.Message // of its call as they are at the moment; nil before there is one, and apart from calls
	host      *interceptor  // whose hook it is
	node      *crifield.Node
	pod       *crifield.Pod       // nil if there is none or it is not known
	container *crifield.Container // nil in a hook of a pod
	sent      *crifield.Container // what an update sends of container, which has more
	withdrawn []plugin.Owned      // what plugins want no longer
	handles   handles             // what the event handed out
	round     round               // of the node's pods
	limits    map[podFile]string  // of pods, as they were read
}

// podFile is a cgroup file of a pod.
type podFile struct{ pod, file string }

var (
	_ plugin.Subject     = (*event)(nil)
	_ plugin.Remembering = (*event)(nil)
	_ plugin.PodLimiter  = (*event)(nil)
)

func (e *event) Hook() abi.Hook  { return e.hook }
func (e *event) Time() time.Time { return e.at }

// About names the pod and the container, or the image.
func (e *event) About() (o observe.Object) {
	if e == nil {
		return o
	}
	if e.pod != nil {
		meta := e.pod.Config.GetMetadata()
		o.Namespace, o.Pod, o.PodID = meta.GetNamespace(), meta.GetName(), e.pod.ID
	}
	if e.container != nil {
		o.Container, o.ContainerID = e.container.Config.GetMetadata().GetName(), e.container.ID
	}
	o.Image, _ = e.Text(abi.Event, abi.EventImage)
	return o
}

// object is what a number of the ABI stands for; the zero Object if it is nothing.
func (e *event) object(o abi.Object) crifield.Object {
	switch o {
	case abi.Event:
		return crifield.Object{Event: e}
	case abi.Pod:
		return crifield.Object{Pod: e.pod}
	case abi.Container:
		return crifield.Object{Container: e.container}
	case abi.Node:
		return crifield.Object{Node: e.node}
	}
	if e.round.first == 0 {
		e.round.first = o
	}
	e.round.last = o
	return e.handles.object(o)
}

// Messages implements crifield.Event.
func (e *event) Messages() (req, resp proto.Message) { return e.req, e.resp }

// Int64 implements plugin.Event.
func (e *event) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) { return e.object(o).Int64(f) }

// Text implements plugin.Event.
func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) { return e.object(o).Text(f) }

// Entries implements plugin.Event.
func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	return e.object(o).Entries(f)
}

// Lookup implements plugin.Event.
func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	return e.object(o).Lookup(f, key)
}

// List implements plugin.Event. The runtime is asked for the digests of an image, unless it has told them.
func (e *event) List(ctx context.Context, o abi.Object, f abi.Field) ([]string, abi.Errno) {
	obj := e.object(o)
	if f != abi.ContainerImageRepoDigests || obj.Container == nil {
		return obj.List(f)
	}
	image := obj.Container.Config.GetImage()
	switch {
	case image.GetImage() == "":
		return nil, abi.OK
	case e.host.Images == nil:
		return nil, abi.Unsupported
	}
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	digests, err := e.host.Images.RepoDigests(ctx, image.GetImage(), image.GetUserSpecifiedImage())
	switch {
	case errors.Is(err, pods.ErrNoImage):
		return nil, abi.NotFound
	case err != nil:
		return nil, abi.Unsupported
	case len(digests) > abi.MaxEntries:
		return nil, abi.TooLarge
	}
	return digests, abi.OK
}

// ReadFiles implements plugin.Event.
func (e *event) ReadFiles(ctx context.Context, o abi.Object, files []string, each func(string, abi.Errno)) {
	group, errno := e.readableGroup(ctx, o)
	if errno != abi.OK {
		for range files {
			each("", errno)
		}
		return
	}
	g := e.host.Cgroups.Group(group)
	if o == abi.Node {
		g = e.host.Cgroups.Node()
	}
	defer g.Close()
	for _, file := range files {
		value, err := g.Read(file)
		each(value, plugin.ErrnoOf(err))
	}
}

func (e *event) readableGroup(ctx context.Context, o abi.Object) (string, abi.Errno) {
	pod, ofClass := o.OfQOSClass()
	if ofClass {
		o = pod
	}
	obj := e.object(o)
	switch {
	case o == abi.Event:
		return "", abi.Invalid
	case o == abi.Node && e.host.Cgroups == nil:
		return "", abi.Unsupported
	case o == abi.Node:
		return "", abi.OK
	case ofClass && (o == abi.Container || obj.Container != nil):
		return "", abi.Invalid
	case unmade(obj):
		return "", abi.NotFound
	case e.host.Cgroups == nil:
		return "", abi.Unsupported
	case ofClass:
		group, err := enforce.QOSClassGroup(obj.Pod)
		return group, plugin.ErrnoOf(err)
	}
	ctx, cancel := context.WithTimeout(ctx, locateTime)
	defer cancel()
	group, err := e.host.Enforcer.Group(ctx, obj)
	return group, plugin.ErrnoOf(err)
}

// unmade reports whether an object is a container, or nothing, that is yet to be made.
func unmade(o crifield.Object) bool {
	return o.Pod == nil && (o.Container == nil || o.Container.ID == "")
}

// Opposed implements plugin.Remembering. A resource that kubelet gives a new value in this call
// has no plugin's any more.
func (e *event) Opposed(c *plugin.Change) (first string) {
	file := c.IsFile()
	if !file && !enforce.OfResource(c) {
		return ""
	}
	o := e.object(c.Object)
	if unmade(o) {
		return ""
	}
	first = e.host.Enforcer.Opposed(o, c, func(by string) bool {
		return !slices.ContainsFunc(e.withdrawn, func(w plugin.Owned) bool {
			same := enforce.TargetOf(&w.Change) == enforce.TargetOf(c) && w.Change.SameObject(c)
			return same && w.Plugin == by
		})
	})
	updated := e.sent != nil && !file && o.Container.ID == e.container.ID
	if updated && first != "" {
		target := enforce.TargetOf(c)
		if kubelet, named := e.kubeletValues()[target]; named && !e.host.Ledger.Record(e.host.Enforcer.ID(o)).Repeats(target, kubelet) {
			return ""
		}
	}
	return first
}

// Holds implements plugin.Remembering.
func (e *event) Holds(by string, c *plugin.Change) bool {
	_, ok := e.wish(by, c)
	return ok
}

// Replaces implements plugin.Remembering.
func (e *event) Replaces(by string, c *plugin.Change) bool {
	if e.sent == nil || c.Object != abi.Container {
		return false
	}
	w, wants := e.wish(by, c)
	if !wants || w.Value == enforce.ValueOf(c) {
		return false
	}
	_, named := e.kubeletValues()[enforce.TargetOf(c)]
	return named
}

// wish is what a plugin wants of the cgroup file or resource that the change is of.
func (e *event) wish(by string, c *plugin.Change) (w enforce.Wish, ok bool) {
	o := e.object(c.Object)
	if set := c.IsFile() || enforce.OfResource(c); !set || unmade(o) {
		return w, false
	}
	return e.host.Ledger.Record(e.host.Enforcer.ID(o)).Owner(enforce.TargetOf(c), func(plugin string) bool { return plugin == by })
}

// PodLimit implements plugin.PodLimiter: kubelet's limit, also while it is lifted. The file is read once in an event.
func (e *event) PodLimit(container abi.Object, file string) (value string, ok bool) {
	pod := e.pod
	if c := e.object(container).Container; c != nil && container >= abi.FirstHandle {
		if known, found := e.host.Store.Pod(c.PodID); found {
			pod = crifield.PodOf(known)
		}
	}
	if pod == nil || e.host.Cgroups == nil {
		return "", false
	}
	key := podFile{pod.ID, file}
	if value, ok = e.limits[key]; !ok {
		value = e.host.Enforcer.PodLimit(context.Background(), e.host.Enforcer.ID(crifield.Object{Pod: pod}), pod, file)
		if e.limits == nil {
			e.limits = map[podFile]string{}
		}
		e.limits[key] = value
	}
	return value, value != ""
}

// Apply implements plugin.Subject. Cgroup files and what is withdrawn are no part of a message: the
// caller carries them out.
func (e *event) Apply(changes []plugin.Owned) {
	for i := range changes {
		c := &changes[i].Change
		if c.Op == plugin.Withdraw {
			e.withdrawn = append(e.withdrawn, changes[i])
		}
		if c.IsFile() || c.Op == plugin.Withdraw {
			continue
		}
		e.object(c.Object).Set(c)
		if c.Object == abi.Container && e.sent != nil {
			crifield.Object{Container: e.sent}.Set(c)
		}
	}
	m := &e.host.method
	if e.hook != m.Pre {
		return
	}
	switch carried := m.Carries(e.req); { // the next plugin may read the request as it is
	case carried.Container != nil:
		e.container.WriteConfig()
	case e.sent != nil:
		*carried.Annotations, *carried.Resources = e.sent.Annotations, e.sent.Resources.Now
	case carried.RuntimeHandler != nil:
		*carried.RuntimeHandler = e.pod.RuntimeHandler
	case carried.Overhead != nil:
		if e.pod.Overhead.Own {
			*carried.Overhead = e.pod.Overhead.Now
		}
		if e.pod.Resources.Own {
			*carried.Resources = e.pod.Resources.Now
		}
	}
}

// exemptHooks are those before the calls without which a pod does not run, or does not get its resources.
var exemptHooks = abi.HookSetOf(abi.PrePullImage, abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStartContainer,
	abi.PreUpdateContainerResources, abi.PreUpdatePodSandboxResources)

// Exempt implements plugin.Subject. The namespace is that by which plugins' matches go: of the request, or of
// the store where the request names no pod. Where none is known, policy holds.
func (e *event) Exempt() bool {
	namespace, errno := e.Text(abi.Pod, abi.PodNamespace)
	return errno == abi.OK && exemptHooks.Has(e.hook) && slices.Contains(e.host.ExemptNamespaces, namespace)
}
