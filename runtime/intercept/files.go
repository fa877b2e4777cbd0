package intercept

import (
	"context"
	"path"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// deferUpdates notes what plugins want of pods and containers other than the event's own, and has these
// reconciled. It does not wait, since an object's queue may hold an event that waits for ours; a caller that
// is in no queue may wait for what it returns.
func (i *interceptor) deferUpdates(ctx context.Context, e *event, owned []plugin.Owned) (reconciled enforce.Queued) {
	if i.Cut.hasBegun() {
		return nil
	}
	var order []abi.Object // as they were first named
	for _, o := range owned {
		if handle := o.Change.Object; handle >= abi.FirstHandle && !slices.Contains(order, handle) {
			order = append(order, handle)
		}
	}
	for _, handle := range order {
		o := e.object(handle)
		id := i.Enforcer.ID(o)
		if o.Pod != nil && !i.Enforcer.Known(id) { // it has been removed since
			continue
		}
		has := o
		if c, known := i.Store.Container(id.Container); known { // kubelet may have changed it since it was handed out
			has.Container = crifield.ContainerOf(c)
		}
		asked := append(e.files(owned, handle), e.fields(owned, handle, has.Container)...)
		if _, any := i.Enforcer.Ask(o, asked); any {
			reconciled = append(reconciled, i.Enforcer.Reconcile(ctx, id))
		}
	}
	return reconciled
}

// applyFiles has the cgroup files among the changes of one object of an event written. Those
// of a container that has not started are written by StartContainer. rollback ends these wishes
// and restores the values that were before. The error is a *plugin.Error, for a pod that is about to
// run: kubelet has made its cgroup, and a plugin with policy Fail refuses the pod if a file of it
// cannot be written.
func (i *interceptor) applyFiles(ctx context.Context, e *event, of abi.Object, changes []plugin.Owned) (rollback func(), err error) {
	target := e.object(of)
	revert, any := i.Enforcer.Ask(target, e.files(changes, of))
	if !any {
		return func() {}, nil
	}
	rollback = func() {
		revert()
		i.Enforcer.Write(ctx, target)
	}
	if target.Container != nil && e.hook == abi.PostCreateContainer && !i.Enforcer.Started(target.Container.ID) {
		return rollback, nil
	}
	done := i.Enforcer.Write(ctx, target)
	if target.Container == nil && target.Pod.ID != "" { // it may have been removed since the event
		i.Enforcer.Forget(ctx, target)
	}
	if of == abi.Pod && e.hook.Info().Phase == abi.Before {
		err = i.refusal(ctx, e, changes, done)
	}
	return rollback, err
}

// refusal is the error of a plugin with policy Fail one of whose files could not be written; nil
// if there is no such plugin, or the event is exempt, where such a plugin is as one with policy Ignore.
func (i *interceptor) refusal(ctx context.Context, e *event, changes []plugin.Owned, done []enforce.Done) error {
	for _, d := range done {
		fails := slices.ContainsFunc(changes, func(o plugin.Owned) bool {
			its := o.Plugin == d.Plugin && o.Change.Op == plugin.WriteFile
			return its && o.Change.Key == d.File && o.Policy == plugin.Fail
		})
		if d.Err == nil || !fails {
			continue
		}
		refusal := &plugin.Error{Plugin: d.Plugin, Hook: e.hook, Err: d.Err}
		if !e.Exempt() {
			return refusal
		}
		i.Observer.Observe(ctx, refusal.Exempted(e.About()))
	}
	return nil
}

// enforceOwn has the values enforced that the call's own object is to have, now that the runtime has accepted the call,
// and those repaired that it may have overwritten.
func (c *call) enforceOwn(ctx context.Context, after *event) {
	if c.method.Effect == cri.Nothing {
		return
	}
	own := crifield.Object{Pod: after.pod}
	if after.container != nil {
		own = crifield.Object{Container: after.container}
	}
	values, id, cause, effect := &c.Enforcer, c.Enforcer.ID(own), path.Base(c.method.Name), c.method.Effect
	if effect == cri.Updates && own.Container != nil {
		values.Named(id, *c.method.Carries(c.req).Resources)
	}
	if effect == cri.Removes {
		values.Forget(ctx, own)
		return
	}
	if c.Cut.hasBegun() { // nothing of plugins is to be written any more
		return
	}
	asked := false
	if own.Container != nil && effect != cri.Stops {
		_, asked = values.Ask(own, c.event.files(c.owned, abi.Container))
	}
	switch {
	case effect == cri.Stops:
		values.Lift(ctx, id.Pod)
	case effect == cri.Starts:
		values.Start(ctx, own, cause)
	case own.Pod != nil:
		values.RepairPod(ctx, id.Pod, cause)
	case effect == cri.Updates && asked: // those of a new container are written when it starts
		values.Write(ctx, own)
	}
}
