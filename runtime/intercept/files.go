package intercept

import (
	"context"
	"path"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// askedFiles are the wishes for cgroup files among the changes of one object of an event.
func askedFiles(e *event, of abi.Object, changes []plugin.Owned) (asked []ledger.Asked) {
	for _, o := range changes {
		if o.Change.Op == plugin.WriteFile && o.Change.Object == of {
			wish := ledger.Wish{
				Plugin: o.Plugin, Generation: e.host.Generations[o.Plugin], Hook: e.hook, Value: o.Change.Text, At: e.at, Raises: o.Change.Raises,
			}
			asked = append(asked, ledger.Asked{Target: ledger.File(o.Change.Key), Wish: wish, Same: sameFile(o.Change.Key)})
		}
	}
	return asked
}

// ask has the ledger note what plugins want of an object, which a call may have made since the event, and reports
// whether that is anything. revert takes it back. Nothing is noted of a container that has been removed
// since: nobody would drop the record.
func (i *interceptor) ask(target crifield.Object, asked []ledger.Asked) (revert func(), any bool) {
	if len(asked) == 0 {
		return nil, false
	}
	id := i.idOf(target)
	revert = i.Ledger.Ask(id, asked...)
	if target.Container != nil && !i.known(id) { // a removal that the store hears of from here on drops the record
		revert()
		return nil, false
	}
	return revert, true
}

// applyFiles has the cgroup files among the changes of one object of an event written. Those
// of a container that has not started are written by StartContainer. takeBack ends these wishes
// and restores the values that were before. The error is a *plugin.Error, for a pod that is about to
// run: kubelet has made its cgroup, and a plugin with policy Fail refuses the pod if a file of it
// cannot be written.
func (i *interceptor) applyFiles(ctx context.Context, e *event, of abi.Object, changes []plugin.Owned) (takeBack func(), err error) {
	target := e.object(of)
	revert, any := i.ask(target, askedFiles(e, of, changes))
	if !any {
		return func() {}, nil
	}
	takeBack = func() {
		revert()
		i.carry(ctx, target, ledger.Expected)
	}
	if target.Container != nil {
		defer i.liftPod(ctx, i.idOf(target).Pod)
	}
	if target.Container != nil && e.hook == abi.PostCreateContainer && !i.started(target.Container.ID) {
		return takeBack, nil
	}
	done := i.carry(ctx, target, ledger.Wanted)
	if target.Container == nil && target.Pod.ID != "" { // it may have been removed since the event
		i.forgetFiles(ctx, target)
	}
	if of == abi.Pod && e.hook.Info().Phase == abi.Before {
		err = i.refusal(ctx, e, changes, done)
	}
	return takeBack, err
}

// refusal is the error of a plugin with policy Fail of which a file could not be written; nil
// if there is none, or the event is exempt, where such a plugin is as one with policy Ignore.
func (i *interceptor) refusal(ctx context.Context, e *event, changes []plugin.Owned, done []ledger.Done) error {
	for _, d := range done {
		fails := slices.ContainsFunc(changes, func(o plugin.Owned) bool {
			return o.Policy == plugin.Fail && o.Plugin == d.Plugin && o.Change.Op == plugin.WriteFile && o.Change.Key == d.File
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

// started reports whether the container has left the state in which it has no
// cgroup yet. A caller has the ledger note its files before it asks, and StartContainer reads
// them after the store has its new state: so one of the two writes them.
func (i *interceptor) started(id string) bool {
	record, known := i.Store.Container(id)
	return known && record.State != runtimeapi.ContainerState_CONTAINER_CREATED
}

// settleFiles has the cgroup files written that the call's own container is to have, now that
// the runtime has accepted the call, and repairs those that it may have overwritten.
func (c *call) settleFiles(ctx context.Context, after *event) {
	own := crifield.Object{Pod: after.pod}
	if after.container != nil {
		own = crifield.Object{Container: after.container}
	}
	if c.method.Effect == cri.Updates && own.Container != nil {
		c.named(c.idOf(own), *c.method.Carries(c.req).Resources)
	}
	switch {
	case c.method.Effect == cri.Removes:
		c.forgetFiles(ctx, own)
		return
	case c.Cut.hasBegun(): // nothing of plugins is to be written any more
		return
	case c.method.Effect == cri.Stops:
		c.liftPod(ctx, c.idOf(own).Pod)
		return
	case c.method.Effect == cri.Makes:
		if own.Container != nil { // StartContainer writes them
			c.ask(own, askedFiles(c.event, abi.Container, c.owned))
		} else {
			c.repairPod(ctx, c.idOf(own))
		}
		return
	}
	if own.Container != nil {
		if _, asked := c.ask(own, askedFiles(c.event, abi.Container, c.owned)); asked || c.method.Effect == cri.Starts {
			c.carry(ctx, own, ledger.Wanted)
			c.liftPod(ctx, c.idOf(own).Pod)
		}
		if c.method.Effect == cri.Starts {
			for _, l := range c.ownLimits(ctx, c.idOf(own)) {
				c.Observer.Observe(ctx, &observe.PodLimitStays{Plugin: l.plugin, Object: c.about(c.idOf(own), own), File: l.file, Value: l.value})
			}
		}
	}
	if c.method.Effect == cri.Starts || c.method.Effect == cri.Updates && own.Pod != nil {
		c.repairPod(ctx, c.idOf(own))
	}
}

// repairPod has the files of a pod and its containers written again that the call may have
// overwritten: when a container starts, systemd may write its siblings' again. Its own files have just been
// written then.
func (c *call) repairPod(ctx context.Context, own ledger.ID) {
	ids := c.Ledger.Of(own.Pod)
	for _, id := range ids {
		c.Ledger.Note(id, path.Base(c.method.Name))
	}
	if own.Container != "" && c.Ledger.Has(own) {
		c.resetFields(ctx, own)
		ids = slices.DeleteFunc(ids, func(id ledger.ID) bool { return id == own })
	}
	c.settle(ctx, ids, ledger.Expected)
}

// repair is carryOut for an object that the caller does not have.
func (i *interceptor) repair(ctx context.Context, id ledger.ID, why ledger.Why) []ledger.Done {
	var o crifield.Object
	if id.Container == "" {
		if pod, ok := i.podOf(id.Pod); ok {
			o.Pod = pod
		}
		if i.dropGone(id) {
			return nil
		}
		if i.vacant(id) {
			why = ledger.Vacant
		}
		i.decideLimits(ctx, id.Pod)
	} else if c, ok := i.Store.Container(id.Container); ok {
		if o.Container = crifield.ContainerOf(c); !i.started(id.Container) {
			return nil
		}
	}
	return i.carryOut(ctx, id, o, why)
}

// carry is carryOut for an object that the caller has.
func (i *interceptor) carry(ctx context.Context, o crifield.Object, why ledger.Why) []ledger.Done {
	return i.carryOut(ctx, i.idOf(o), o, why)
}

// carryOut is the one place that writes cgroup files: it writes those of an object that do not
// hold what the ledger says, and has an event of each. The object is zero if only the ledger
// knows it.
func (i *interceptor) carryOut(ctx context.Context, id ledger.ID, o crifield.Object, why ledger.Why) []ledger.Done {
	files := i.Ledger.Files(id)
	if i.Cgroups == nil || len(files) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what the runtime has accepted is carried out whether or not the caller waits
	unlock, ok := i.Ledger.Lock(ctx, id)
	if !ok {
		return nil
	}
	defer unlock()
	g := i.read(ctx, id, o, files)
	defer g.Close()
	done := i.writeDue(ctx, id, &g, files, why)
	for k := range done {
		i.fileWritten(ctx, i.about(id, o), &done[k])
	}
	return done
}

// writeDue writes those of the files that do not hold what the ledger says, and has in g.held what they hold then.
func (i *interceptor) writeDue(ctx context.Context, id ledger.ID, g *groupFiles, files []string, why ledger.Why) (done []ledger.Done) {
	for again := true; again; {
		var written []ledger.Done
		again = false
		for _, w := range lessBurst(i.Ledger.Begin(id, g.held, why, g)) {
			if again && w.File == rules.CPUBurst && w.Kind != ledger.Fight { // the next Begin fits it to the new quota
				continue
			}
			d := g.write(ctx, w)
			written = append(written, d)
			again = again || d.Err == nil && d.Read != "" && letsOthers(w, files)
		}
		i.markEnded(ctx, id, g, written)
		i.Ledger.End(id, written)
		done = append(done, written...)
		if again {
			g.held = heldFiles(g.Group, files)
		}
	}
	return done
}

// markEnded marks the failures of a container that has ended by itself, which is no failure. The runtime is asked:
// a cgroup may be where nobody looks for it.
func (i *interceptor) markEnded(ctx context.Context, id ledger.ID, g *groupFiles, done []ledger.Done) {
	failed := slices.ContainsFunc(done, func(d ledger.Done) bool { return d.Err != nil })
	if !failed || id.Container == "" {
		return
	}
	gone := g.none != nil || i.Cgroups.Gone(g.Path())
	if !gone || !i.exited(ctx, id.Container) {
		return
	}
	for k := range done {
		done[k].Ended = done[k].Err != nil
	}
}

// exited asks the runtime whether a container has ended.
func (i *interceptor) exited(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, readThroughTime)
	defer cancel()
	c, err := i.Store.Locate(ctx, i.Backend, id)
	return notFound(err) || err == nil && c.State == runtimeapi.ContainerState_CONTAINER_EXITED
}

// write carries out what is due for one file of the group.
func (g groupFiles) write(ctx context.Context, w ledger.Write) ledger.Done {
	d := ledger.Done{Write: w, Err: g.none}
	if w.Kind == ledger.Fight || d.Err != nil {
		return d
	}
	if w.Kind == ledger.Undo || w.Exact != "" && endsIdle(w) {
		d.Err = g.Restore(ctx, w.File, w.Value, w.Exact)
	} else {
		d.Err = g.Write(ctx, w.File, w.Value)
	}
	if d.Err == nil {
		d.Read, _ = g.Read(w.File)
	}
	return d
}

// fileWritten makes the event of a file that was written, or was not. A scan's next failure for the
// same reason makes none.
func (i *interceptor) fileWritten(ctx context.Context, about observe.Object, d *ledger.Done) {
	switch {
	case d.Again, d.Ended:
	case d.Err != nil:
		i.Observer.Observe(ctx, &observe.CgroupFileFailed{
			Plugin: d.Plugin, Hook: d.Hook, Object: about, File: d.File, Value: d.Value, Err: d.Err,
		})
	case d.Kind == ledger.Repair:
		i.Observer.Observe(ctx, &observe.CgroupFileRepaired{
			Plugin: d.Plugin, Object: about, File: d.File, Value: d.Value, Found: d.Found, Last: d.Cause,
		})
	case d.Kind == ledger.Fight:
		i.Observer.Observe(ctx, &observe.CgroupFileFought{
			Plugin: d.Plugin, Object: about, File: d.File, Value: d.Value, Found: d.Found, Last: d.Cause,
		})
	case d.Kind == ledger.Undo:
		i.Observer.Observe(ctx, &observe.CgroupFileUndone{Object: about, File: d.File, Value: d.Value})
	case i.Observer.Wants(observe.KindCgroupFileWritten):
		i.Observer.Observe(ctx, &observe.CgroupFileWritten{Plugin: d.Plugin, Hook: d.Hook, Object: about, File: d.File, Value: d.Value})
	}
}
