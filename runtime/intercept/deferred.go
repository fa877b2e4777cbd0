package intercept

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// deferredTime is how long a deferred update may take, or a reset with all of its parts, with the wait
// for earlier ones.
const deferredTime = 10 * time.Second

// deferUpdates carries out what plugins want of pods and containers other than the event's
// own. All changes of one object are one update, in the object's queue: after the hooks
// of the object that have begun, before those that come. It does not wait, since the object's
// queue may hold an event that waits for ours; a caller that is in no queue may wait for
// what it returns. A failure is an event.
func (i *interceptor) deferUpdates(ctx context.Context, e *event, owned []plugin.Owned) *sync.WaitGroup {
	var order []abi.Object // as they were first named
	changes := map[abi.Object][]plugin.Owned{}
	for _, o := range owned {
		if o.Change.Object < abi.FirstHandle {
			continue
		}
		if changes[o.Change.Object] == nil {
			order = append(order, o.Change.Object)
		}
		changes[o.Change.Object] = append(changes[o.Change.Object], o)
	}
	pending := new(sync.WaitGroup)
	ctx = context.WithoutCancel(ctx)
	for _, handle := range order {
		pending.Add(1)
		started := i.Queue.Go(keyOf(e.object(handle)), func() {
			defer pending.Done()
			i.update(ctx, e, handle, changes[handle])
		})
		if !started {
			pending.Done()
			i.updateFailed(ctx, e, changes[handle], errBusy)
		}
	}
	return pending
}

// keyOf is the queue of an object's own events.
func keyOf(o crifield.Object) string {
	if o.Container != nil {
		return o.Container.ID
	}
	return o.Pod.ID
}

// update carries out the changes of one object. All resources are one call of the runtime;
// the cgroup files follow while what could be in the call's way is still suspended.
func (i *interceptor) update(ctx context.Context, e *event, handle abi.Object, changes []plugin.Owned) {
	defer func() {
		if r := recover(); r != nil {
			i.Observer.Observe(ctx, &observe.Panicked{
				During: "a deferred update", Hook: e.hook, Object: e.About(), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, deferredTime)
	defer cancel()
	done, err := i.Queue.acquireUpdate(ctx)
	if err != nil {
		i.updateFailed(ctx, e, changes, err)
		return
	}
	defer done()
	if i.Cut.hasBegun() {
		return
	}
	var resources []plugin.Owned
	for _, o := range changes {
		if o.Change.Op != plugin.WriteFile {
			resources = append(resources, o)
		}
	}
	writeFiles := func() { _, _ = i.applyFiles(ctx, e, handle, changes) } // a failure is an event
	if len(resources) == 0 {
		writeFiles()
	} else if err := i.updateResources(ctx, e, e.object(handle).Container, changes, writeFiles); err != nil {
		i.updateFailed(ctx, e, resources, err)
	}
}

// updateResources asks the runtime for one update of all resources that the plugins want, and
// then calls writeFiles. It calls no hook: a plugin that answers its own update would never
// come to an end.
func (i *interceptor) updateResources(ctx context.Context, e *event, c *crifield.Container, changes []plugin.Owned, writeFiles func()) (err error) {
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.ID, Linux: &runtimeapi.LinuxContainerResources{}}
	sent := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: req.Linux, Own: true}}}
	for _, o := range changes {
		if o.Change.Op != plugin.WriteFile {
			sent.Set(&o.Change)
		}
	}
	if known, ok := i.Store.Container(c.ID); ok {
		nameShares(req, known.Config.GetLinux().GetResources(), changes, changes[0].Change.Object)
	}
	defer i.liftPod(ctx, i.idOf(crifield.Object{Container: c}).Pod)
	hold := i.suspend(ctx, e, c, req)
	defer func() { i.restore(ctx, e, c, hold, req, err == nil) }()
	defer writeFiles()
	defer i.keepOOMGroup(ctx, c, req.Linux)()
	resp, err := i.Backend.UpdateContainerResources(ctx, req)
	if err == nil {
		i.Store.Observe(nil, req, resp)
		i.notedUpdate(e, changes[0].Change.Object, i.idOf(crifield.Object{Container: c}), changes, req.Linux)
	}
	return err
}

func (i *interceptor) updateFailed(ctx context.Context, e *event, changes []plugin.Owned, err error) {
	for _, o := range changes {
		i.Observer.Observe(ctx, &observe.DeferredUpdateFailed{Plugin: o.Plugin, Hook: e.hook, Object: e.About(), Field: o.Change.Target(), Err: err})
	}
}
