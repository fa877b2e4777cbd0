package enforce

import (
	"context"
	"fmt"
	"hash/crc32"
	"runtime/debug"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Queued are objects that are about to be reconciled. Each is closed when one was, and its pod if that follows.
type Queued []<-chan struct{}

// Wait returns when all were reconciled, or ctx is done. Whoever waits is in no object's queue.
func (q Queued) Wait(ctx context.Context) {
	for _, done := range q {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// DropGone drops the records of objects that the store lacks, which has all pods and containers of
// the runtime. First, records of containers follow pods that have another name than when they were
// made: Docker has made the name up, or its user has changed it.
func (e *Enforcer) DropGone() {
	for _, id := range e.Ledger.Objects() {
		c, _ := e.Store.Container(id.Container)
		if pod, ok := e.Store.Pod(c.PodID); ok && c.ID == id.Container {
			e.Ledger.Record(id).Move(UID(pod.Config))
		}
	}
	e.Ledger.Retain(e.Known, e.hasGroup)
}

// ScanParts is in how many scans each pod is looked at once. To read ten files of each of 2,000 containers takes
// 150 ms of a processor, and on cgroup v1 twice that.
const ScanParts = 3

// Scan looks for values that something else has overwritten, and writes them again, and asks
// the runtime again for what it has refused. It does not wait any longer if ctx is done.
func (e *Enforcer) Scan(ctx context.Context) {
	e.scan(ctx, func(ID) bool { return true })
}

// ScanPart is Scan of one pod in ScanParts, others with each number, and of all objects of which something is not
// as it should be.
func (e *Enforcer) ScanPart(ctx context.Context, number uint64) {
	e.scan(ctx, func(id ID) bool {
		return crc32.ChecksumIEEE([]byte(id.Pod))%ScanParts == uint32(number%ScanParts) || e.Ledger.Record(id).Unsettled()
	})
}

// scan has those objects reconciled that are due, and the pod of each, once: a limit of a container may be above one that the
// pod has by now.
func (e *Enforcer) scan(ctx context.Context, due func(ID) bool) {
	var ids []ID
	pod := ID{}
	for _, id := range e.Ledger.Objects() { // sorted by pod
		if !due(id) {
			continue
		}
		if id.Pod != pod.Pod {
			pod.Pod = id.Pod
			ids = append(ids, pod)
		}
		if id != pod {
			ids = append(ids, id)
		}
	}
	e.queue(ctx, ids, "").Wait(ctx)
}

// Repair repairs what cause may have overwritten of any object: a new connection to the container runtime, or a reload of
// systemd, which writes its own values to files that it does not know. It does not wait any longer if ctx is done.
func (e *Enforcer) Repair(ctx context.Context, cause string) {
	e.queue(ctx, e.Ledger.Objects(), cause).Wait(ctx)
}

// Withdraw ends the wishes for which end returns true, and has kubelet's values written back.
func (e *Enforcer) Withdraw(ctx context.Context, end func(ID, Target, Wish) bool) Queued {
	return e.queue(ctx, e.Ledger.Withdraw(end), "")
}

// RepairPod has a pod and its containers reconciled after a call that may have overwritten values of any: when a container
// starts, systemd may write its siblings' again.
func (e *Enforcer) RepairPod(ctx context.Context, uid, cause string) {
	e.queue(ctx, e.Ledger.Of(uid), cause)
}

// queue has objects reconciled. cause is a call or reload that may have overwritten values of them; "" is no cause.
func (e *Enforcer) queue(ctx context.Context, ids []ID, cause string) (all Queued) {
	for _, id := range ids {
		if cause != "" {
			e.Ledger.Record(id).Note(cause)
		}
		all = append(all, e.Reconcile(ctx, id))
	}
	return all
}

// Reconcile has an object reconciled in its queue: after what its calls do, and once however often it is asked for. done
// is closed then.
func (e *Enforcer) Reconcile(ctx context.Context, id ID) (done <-chan struct{}) {
	key := id.Container
	if key == "" {
		if key, _ = e.Sandbox(id); key == "" {
			key = id.Pod
		}
	}
	ctx = context.WithoutCancel(ctx)
	return e.Queue.Reconcile(key, func() []<-chan struct{} { return e.of(id).reconcile(ctx) })
}

// work is what is done to one object.
type work struct {
	*Enforcer
	id     ID
	record Record
}

func (e *Enforcer) of(id ID) work { return work{e, id, e.Ledger.Record(id)} }

// reconcile has an object be what its record says: files are written, and the runtime is sent the fields that it should
// have and has not, in one update. What fails is due again with the next call or scan. The limits of its pod follow.
func (w work) reconcile(ctx context.Context) (pod Queued) {
	defer func() {
		if r := recover(); r != nil {
			const during = "a comparison of values with what is"
			obj := w.objectOf(crifield.Object{})
			w.Observer.Observe(ctx, &observe.Panicked{During: during, Object: obj, Panic: fmt.Sprint(r), Stack: string(debug.Stack())})
		}
	}()
	why := w.record.Look()
	w.dropFailures(ctx)
	if w.id.Container == "" {
		if !w.dropGone() {
			if w.vacant() {
				why = Vacant
			}
			w.decideLimits(ctx)
			w.carryOut(ctx, crifield.Object{Pod: w.pod(w.id.Pod)}, why)
		}
		return nil
	}
	w.repairContainer(ctx, why)
	sent := false
	if why != Scan || !w.record.Rests() {
		sent = w.update(ctx)
	}
	if why == Scan && !sent { // the scan looks at the pod
		return nil
	}
	return w.Lift(ctx, w.id.Pod)
}
