package intercept

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// acquire has an update wait in its container's queue, and holds back later items until
// release is called. Deferred updates of the container are over before the call looks
// at it, or come after it.
func (c *call) acquire(ctx context.Context) (release func()) {
	r, ok := c.req.(*runtimeapi.UpdateContainerResourcesRequest)
	if !ok {
		return func() {}
	}
	id := r.GetContainerId()
	if container, ok := c.container(ctx, id); ok {
		id = container.ID // the queue goes by whole IDs, and callers may send a prefix
	}
	release, err := c.Queue.Acquire(ctx, id)
	if err != nil && !c.Cut.hasBegun() {
		c.Observer.Observe(ctx, &observe.PostHooksLate{Method: c.method.Name, Object: observe.Object{ContainerID: id}, Err: err})
	}
	return release
}

// updateEvent is about a container whose resources change: its values with
// the request applied. Only what the request names or a plugin sets is
// sent to the backend, and what nameWithIdle adds.
func (c *call) updateEvent(ctx context.Context, carried cri.Carried) *event {
	e := c.containerEvent(ctx, cri.ContainerID(c.req))
	if e == nil {
		return nil
	}
	view := e.container
	view.Resources = crifield.Resources{Now: pods.LayResources(view.Resources.Now, *carried.Resources)}
	annotations := map[string]string{}
	maps.Copy(annotations, view.Annotations)
	maps.Copy(annotations, *carried.Annotations)
	view.Annotations = annotations
	e.sent = &crifield.Container{Annotations: *carried.Annotations, Resources: crifield.Resources{Now: *carried.Resources}}
	return e
}

// nameWithIdle has an update with which plugins end the container's cpu.idle name what a runtime would lose then. That is
// no value of kubelet's, whose message the event still has.
func (c *call) nameWithIdle() {
	ends := func(o plugin.Owned) bool { return o.Change.Object == abi.Container && o.Change.EndsIdle() }
	r, updates := c.req.(*runtimeapi.UpdateContainerResourcesRequest)
	if !updates || !slices.ContainsFunc(c.owned, ends) {
		return
	}
	linux := cmp.Or(proto.CloneOf(r.Linux), &runtimeapi.LinuxContainerResources{})
	if enforce.NameWith(rules.CPUIdle, linux, c.event.container.Resources.Now) {
		r.Linux, c.dirty = linux, true
	}
}

// updatePodEvent tells of a pod whose resources or overhead change: what it has,
// with what the request has in its place. These messages are whole sums, so that a
// plugin's change is sent together with all that it leaves as it is.
func (c *call) updatePodEvent(ctx context.Context, carried cri.Carried) *event {
	e := c.podEvent(ctx, cri.PodID(c.req))
	if e == nil {
		return nil
	}
	if *carried.Overhead != nil {
		e.pod.Overhead = crifield.Resources{Now: *carried.Overhead, Own: true}
	}
	if *carried.Resources != nil {
		e.pod.Resources = crifield.Resources{Now: *carried.Resources, Own: true}
	}
	return e
}
