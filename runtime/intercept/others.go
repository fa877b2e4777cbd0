package intercept

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// otherTime is how long one update of another container may take, waiting for those
// before it included.
const otherTime = 10 * time.Second

// otherWrite is all that the plugins of one event want of one object other than
// the event's own.
type otherWrite struct {
	hook   abi.Hook
	object crifield.Object
	owned  []plugin.Owned
}

// others gathers the changes of other objects, by object, in the order in which
// they were first named. The handles mean nothing after the event.
func (e *event) others(owned []plugin.Owned) []*otherWrite {
	var writes []*otherWrite
	byHandle := map[abi.Object]*otherWrite{}
	for _, o := range owned {
		if o.Change.Object < abi.FirstHandle {
			continue
		}
		w := byHandle[o.Change.Object]
		if w == nil {
			w = &otherWrite{hook: e.hook, object: e.object(o.Change.Object)}
			byHandle[o.Change.Object], writes = w, append(writes, w)
		}
		w.owned = append(w.owned, o)
	}
	return writes
}

// turn is that of the object's own events.
func (w *otherWrite) turn() string {
	if w.object.Container != nil {
		return w.object.Container.ID
	}
	return w.object.Pod.ID
}

// writeOthers carries the writes out, each in its object's turn: after the hooks
// of the object that have begun, before those that come. It does not wait, since
// the object's turn may be that of an event which waits for ours; who is in
// no turn may wait by what it returns. Nobody can be told of a failure but the log.
func (i *interceptor) writeOthers(ctx context.Context, e *event, writes []*otherWrite) *sync.WaitGroup {
	pending := new(sync.WaitGroup)
	ctx = context.WithoutCancel(ctx)
	for _, w := range writes {
		pending.Add(1)
		started := i.Turns.Go(w.turn(), func() {
			defer pending.Done()
			i.writeOther(ctx, e, w)
		})
		if !started {
			pending.Done()
			i.notWritten(ctx, e, w.hook, w.owned, errBusy)
		}
	}
	return pending
}

func (i *interceptor) writeOther(ctx context.Context, e *event, w *otherWrite) {
	defer func() {
		if r := recover(); r != nil {
			i.Observer.Observe(ctx, &observe.Panicked{
				During: "a deferred update", Hook: w.hook, Object: e.About(), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	written, err := i.Turns.writer(ctx)
	if err != nil {
		i.notWritten(ctx, e, w.hook, w.owned, err)
		return
	}
	defer written()
	resources, files := w.split()
	writeFiles := func() { i.writeOtherFiles(ctx, e, w, files) }
	if len(resources) == 0 {
		writeFiles()
		return
	}
	if err := i.updateOther(ctx, e, w.object.Container, w.owned, writeFiles); err != nil {
		i.notWritten(ctx, e, w.hook, resources, err)
	}
}

// split tells the changes of resources from cgroup files.
func (w *otherWrite) split() (resources, files []plugin.Owned) {
	for _, o := range w.owned {
		if o.Change.Op == plugin.WriteFile {
			files = append(files, o)
		} else {
			resources = append(resources, o)
		}
	}
	return resources, files
}

// updateOther asks the runtime for one update of all resources that the plugins want, and
// then, while what could be in its way is still held back, calls writeFiles. It
// calls no hook: a plugin that answers its own update would never come to an end.
func (i *interceptor) updateOther(ctx context.Context, e *event, c *crifield.Container, changes []plugin.Owned, writeFiles func()) (err error) {
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
	hold := i.hold(ctx, e, c, req)
	defer func() { i.restore(ctx, e, hold, err == nil) }()
	defer writeFiles()
	resp, err := i.Backend.UpdateContainerResources(ctx, req)
	if err == nil {
		i.Store.Observe(nil, req, resp)
	}
	return err
}

// writeOtherFiles writes cgroup files. Those of a container are noted as those of
// its own events are, so that they are written when it starts if it has not yet.
func (i *interceptor) writeOtherFiles(ctx context.Context, e *event, w *otherWrite, files []plugin.Owned) {
	wanted := map[string]string{}
	for _, o := range files {
		wanted[o.Change.Key] = o.Change.Text
	}
	if c := w.object.Container; c != nil && len(files) > 0 {
		i.Store.AddCgroupFiles(c.ID, wanted)
		if !i.started(c.ID) {
			return
		}
	}
	group, err := i.locator().group(ctx, w.object)
	for _, o := range files {
		writeErr := err
		if writeErr == nil {
			writeErr = i.Cgroups.Write(group, o.Change.Key, o.Change.Text)
		}
		switch {
		case errors.Is(writeErr, cgroup.ErrSystemd):
			i.fileNotWritten(ctx, &observe.CgroupFileFailed{Err: writeErr})
		case writeErr != nil:
			i.notWritten(ctx, e, w.hook, []plugin.Owned{o}, writeErr)
		}
	}
}

func (i *interceptor) notWritten(ctx context.Context, e *event, hook abi.Hook, changes []plugin.Owned, err error) {
	for _, o := range changes {
		i.Observer.Observe(ctx, &observe.DeferredUpdateFailed{Plugin: o.Plugin, Hook: hook, Object: e.About(), Field: o.Change.Target(), Err: err})
	}
}
