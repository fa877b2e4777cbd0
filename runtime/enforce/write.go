package enforce

import (
	"context"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Ask has the ledger note what plugins want of an object, which a call may have made since the event, and reports
// whether that is anything. revert takes it back. Nothing is noted of a container that has been removed
// since: its record would never be dropped.
func (e *Enforcer) Ask(target crifield.Object, asked []Asked) (revert func(), any bool) {
	if len(asked) == 0 {
		return nil, false
	}
	id := e.ID(target)
	undo := e.Ledger.Record(id).Ask(asked...)
	revert = func() {
		had := e.Ledger.Record(id).Has()
		undo()
		if gone := target.Container != nil && !e.Known(id); gone && !had { // a wish that was withdrawn is no record's any more
			e.Ledger.Record(id).Remove()
		}
	}
	if target.Container != nil && !e.Known(id) { // a removal that the store hears of from here on drops the record
		revert()
		return nil, false
	}
	return revert, true
}

// Started reports whether the container has left the state in which it has no
// cgroup yet. A caller has the ledger note its files before it asks, and StartContainer reads
// them after the store has its new state: so one of the two writes them.
func (e *Enforcer) Started(id string) bool {
	record, known := e.Store.Container(id)
	return known && record.State != runtimeapi.ContainerState_CONTAINER_CREATED
}

// Write writes those of an object's cgroup files that do not hold what they should, at once: the caller is in a call of the
// object, which the store may not know yet. The limits of its pod follow.
func (e *Enforcer) Write(ctx context.Context, o crifield.Object) []Done {
	id := e.ID(o)
	done := e.of(id).carryOut(ctx, o, Called)
	if o.Container != nil {
		e.Lift(ctx, id.Pod)
	}
	return done
}

// Start writes the files of a container that has started, and has its pod repaired. An event tells of limits of the
// pod that are below the container's and stay. An update of the proxy's own must not come between the read of a file and
// the write, since what the runtime has written would be lost: so the files are written in the container's queue, or, behind
// an item that takes too long, when the container is reconciled.
func (e *Enforcer) Start(ctx context.Context, o crifield.Object, cause string) {
	id := e.ID(o)
	if len(e.Ledger.Record(id).Files()) > 0 {
		release, err := e.Queue.Acquire(context.WithoutCancel(ctx), id.Container)
		if err == nil {
			e.Write(ctx, o)
		}
		release()
	}
	pod := e.of(ID{Pod: id.Pod})
	pod.decideLimits(ctx)
	for _, l := range pod.ownLimits(ctx, id.Container) {
		e.Observer.Observe(ctx, &observe.PodLimitStays{Plugin: l.plugin, Object: e.of(id).objectOf(o), File: l.file, Value: l.value})
	}
	e.RepairPod(ctx, id.Pod, cause)
}

// repairContainer writes the files of a container that has a cgroup. When cpu.idle ends, the runtime is to be sent the
// container's share too, since some forget it.
func (w work) repairContainer(ctx context.Context, why Why) {
	var o crifield.Object
	c, known := w.Store.Container(w.id.Container)
	if known {
		o.Container = crifield.ContainerOf(c)
	}
	ended := c.State == runtimeapi.ContainerState_CONTAINER_EXITED
	if ended || known && !w.Started(w.id.Container) { // it has no cgroup
		return
	}
	done := w.carryOut(ctx, o, why)
	shares := c.Config.GetLinux().GetResources().GetCpuShares()
	if shares != 0 && slices.ContainsFunc(done, func(d Done) bool { return d.Err == nil && endsIdle(d.Write) }) {
		w.record.Lost(fieldTarget(abi.Resources+abi.CPUShares, ""), strconv.FormatInt(shares, 10))
	}
}

// carryOut is the one place that writes cgroup files: it writes those of an object that do not
// hold what the ledger says, and has an event of each. The object is zero if only the ledger
// knows it.
func (w work) carryOut(ctx context.Context, o crifield.Object, why Why) []Done {
	files := w.record.Files()
	if w.Cgroups == nil || len(files) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what the runtime has accepted is carried out whether or not the caller waits
	unlock, ok := w.record.Lock()
	if !ok {
		return nil
	}
	defer unlock()
	g := w.read(ctx, o, files)
	defer g.Close()
	done := w.writeDue(ctx, &g, files, why)
	for k := range done {
		w.fileWritten(ctx, w.objectOf(o), &done[k])
	}
	return done
}

// writeDue writes those of the files that do not hold what the ledger says, and has in g.held what they hold then.
func (w work) writeDue(ctx context.Context, g *groupFiles, files []string, why Why) (done []Done) {
	for again := true; again; {
		var written []Done
		again = false
		for _, due := range lessBurst(w.record.Begin(g.held, why, g)) {
			if again && due.File == rules.CPUBurst && due.Kind != Fight { // the next Begin fits it to the new quota
				if due.Kind == First { // which is no repair then
					written = append(written, Done{Write: due, Skipped: true})
				}
				continue
			}
			d := g.write(ctx, due)
			written = append(written, d)
			holds := d.Err == nil && d.Read != ""
			again = again || holds && letsOthers(due, files)
		}
		w.markEnded(ctx, g, written, why)
		w.record.End(written)
		done = append(done, written...)
		if again {
			g.held = heldFiles(g.Group, files)
		}
	}
	return done
}

// markEnded marks the failures of a container that has ended by itself, which is no failure. The runtime is asked:
// a cgroup may be where nobody looks for it.
func (w work) markEnded(ctx context.Context, g *groupFiles, done []Done, why Why) {
	failed := slices.ContainsFunc(done, func(d Done) bool { return d.Err != nil })
	if !failed || w.id.Container == "" {
		return
	}
	if gone := g.none != nil || w.Cgroups.Gone(g.Path()); gone && w.exited(ctx, why) {
		for k := range done {
			done[k].Skipped = done[k].Err != nil
		}
	}
}

// A runtime removes the cgroup of a container that has ended, and tells of the end a moment later.
const (
	endTime  = 500 * time.Millisecond
	endPause = 20 * time.Millisecond
)

// exited asks the runtime whether the container has ended whose cgroup is gone. A scan, which may have many to ask for, does not
// wait for the end.
func (w work) exited(ctx context.Context, why Why) bool {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	last := time.Now()
	if why == Called {
		last = last.Add(endTime)
	}
	for {
		c, err := w.Store.Locate(ctx, w.Backend, w.id.Container)
		switch {
		case pods.Gone(err) || err == nil && c.State == runtimeapi.ContainerState_CONTAINER_EXITED:
			return true
		case err != nil || !time.Now().Before(last):
			return false
		}
		time.Sleep(endPause)
	}
}

// write carries out what is due for one file of the group.
func (g groupFiles) write(ctx context.Context, w Write) Done {
	d := Done{Write: w, Err: g.none}
	if w.Kind == Fight || d.Err != nil {
		return d
	}
	if w.Kind == Undo || w.Exact != "" && endsIdle(w) {
		if d.Err = g.Restore(ctx, w.File, w.Value, w.Exact); d.Err == nil {
			d.Read, _ = g.Read(w.File)
		}
		return d
	}
	// What the kernel shows is taken for its form of the value from then on. Something else may have written in between.
	for range 2 {
		if d.Err = g.Write(ctx, w.File, w.Value); d.Err != nil {
			return d
		}
		if d.Read, _ = g.Read(w.File); d.Read == "" || g.Holds(w.File, w.Value, d.Read) {
			return d
		}
	}
	return d
}

// fileWritten makes the event of a file that was written, or was not. A scan's next failure for the
// same reason makes none.
func (w work) fileWritten(ctx context.Context, obj observe.Object, d *Done) {
	switch {
	case d.Again, d.Skipped:
	case d.Err != nil:
		w.Observer.Observe(ctx, &observe.CgroupFileFailed{
			Plugin: d.Plugin, Hook: d.Hook, Object: obj, File: d.File, Value: d.Value, Err: d.Err,
		})
	case d.Kind == Repair:
		w.Observer.Observe(ctx, &observe.CgroupFileRepaired{
			Plugin: d.Plugin, Object: obj, File: d.File, Value: d.Value, Found: d.Found, Last: d.Cause,
		})
	case d.Kind == Fight:
		w.Observer.Observe(ctx, &observe.CgroupFileFought{
			Plugin: d.Plugin, Object: obj, File: d.File, Value: d.Value, Found: d.Found, Last: d.Cause,
		})
	case d.Kind == Undo:
		w.Observer.Observe(ctx, &observe.CgroupFileUndone{Object: obj, File: d.File, Value: d.Value})
	case w.Observer.Wants(observe.KindCgroupFileWritten):
		w.Observer.Observe(ctx, &observe.CgroupFileWritten{Plugin: d.Plugin, Hook: d.Hook, Object: obj, File: d.File, Value: d.Value})
	}
}
