package enforce

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Settle brings the ledger and the cgroup files to where the container runtime is, after it was
// connected: the records of objects that are gone are dropped, and values that were overwritten
// meanwhile are written again. The store has all pods and containers of the runtime.
func (e *Enforcer) Settle(ctx context.Context) {
	e.DropGone()
	for ids := range byPod(e.Ledger.Objects()) {
		for _, id := range ids {
			e.Ledger.Note(id, "a new connection to the container runtime")
		}
		e.settle(ctx, ids, ledger.Expected)
	}
}

// DropGone drops the records of objects that the store lacks, which has all pods and containers of
// the runtime. First, records of containers follow pods that have another name than when they were
// made: Docker has made the name up, or its user has changed it.
func (e *Enforcer) DropGone() {
	for _, id := range e.Ledger.Objects() {
		c, _ := e.Store.Container(id.Container)
		if pod, ok := e.Store.Pod(c.PodID); ok && c.ID == id.Container {
			e.Ledger.Move(id, UID(pod.Config))
		}
	}
	e.Ledger.Retain(e.Known, e.hasGroup)
}

// ScanParts is in how many scans each pod is looked at once. To read ten files of each of 2,000 containers takes
// 150 ms of a processor, and on cgroup v1 twice that.
const ScanParts = 3

// Scan looks for values that something else has overwritten, and writes them again, and asks
// the runtime again for what it has refused. It ends early if ctx is done.
func (e *Enforcer) Scan(ctx context.Context) {
	e.scan(ctx, func(ledger.ID) bool { return true })
}

// ScanPart is Scan of one pod in ScanParts, others with each number, and of all objects of which something is not
// as it should be.
func (e *Enforcer) ScanPart(ctx context.Context, number uint64) {
	e.scan(ctx, func(id ledger.ID) bool {
		return crc32.ChecksumIEEE([]byte(id.Pod))%ScanParts == uint32(number%ScanParts) || e.Ledger.Unsettled(id)
	})
}

func (e *Enforcer) scan(ctx context.Context, due func(ledger.ID) bool) {
	for ids := range byPod(e.Ledger.Objects()) {
		if ids = slices.DeleteFunc(ids, func(id ledger.ID) bool { return !due(id) }); len(ids) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		e.settle(ctx, ids, ledger.Scan)
	}
}

// AfterReload repairs the values that systemd has overwritten with its own when it was reloaded:
// those of files that it does not know. It ends early if ctx is done.
func (e *Enforcer) AfterReload(ctx context.Context) {
	for _, id := range e.Ledger.Objects() {
		if ctx.Err() != nil {
			return
		}
		e.Ledger.Note(id, "a reload of systemd")
		e.settle(ctx, []ledger.ID{id}, ledger.Expected)
	}
}

// Withdraw ends the wishes for which end returns true, and has kubelet's values written back.
func (e *Enforcer) Withdraw(ctx context.Context, end func(ledger.ID, ledger.Target, ledger.Wish) bool) {
	for ids := range byPod(e.Ledger.Withdraw(end)) {
		e.settle(ctx, ids, ledger.Expected)
	}
}

// byPod returns the objects of one pod after the other. They are sorted by pod.
func byPod(ids []ledger.ID) iter.Seq[[]ledger.ID] {
	return func(yield func([]ledger.ID) bool) {
		for len(ids) > 0 {
			n := slices.IndexFunc(ids, func(id ledger.ID) bool { return id.Pod != ids[0].Pod })
			if n < 0 {
				n = len(ids)
			}
			if !yield(ids[:n]) {
				return
			}
			ids = ids[n:]
		}
	}
}

// settle has objects of one pod be what the ledger says: their files at once, and what the runtime is to be sent in
// their queues. When cpu.idle ends, the runtime is asked for the container's share, too, since some forget it. The
// limits of the pod follow once, and not before the containers'.
func (e *Enforcer) settle(ctx context.Context, ids []ledger.ID, why ledger.Why) {
	queued := false
	for _, id := range ids {
		done := e.repair(ctx, id, why)
		if slices.ContainsFunc(done, func(d ledger.Done) bool { return d.Err == nil && endsIdle(d.Write) }) {
			c, _ := e.Store.Container(id.Container)
			if shares := c.Config.GetLinux().GetResources().GetCpuShares(); shares != 0 {
				e.Ledger.Lost(id, fieldTarget(abi.Resources+abi.CPUShares, ""), strconv.FormatInt(shares, 10))
			}
		}
		if why != ledger.Scan || !e.Ledger.Rests(id) {
			queued = e.Reset(ctx, id) || queued
		}
	}
	if len(ids) > 0 && !queued {
		e.Lift(ctx, ids[0].Pod)
	}
}

// Reset has a container reconciled if the runtime has other resources of it than it should, and reports that.
func (e *Enforcer) Reset(ctx context.Context, id ledger.ID) (queued bool) {
	queued = id.Container != "" && len(e.due(id)) > 0
	if queued {
		e.Reconcile(ctx, id)
	}
	return queued
}

// Reconcile has an object reconciled in its queue: after what its calls do, and once however often it is asked for. done
// is closed then.
func (e *Enforcer) Reconcile(ctx context.Context, id ledger.ID) (done <-chan struct{}) {
	key := id.Container
	if key == "" {
		key, _ = e.Sandbox(id)
	}
	ctx = context.WithoutCancel(ctx)
	return e.Queue.Reconcile(key, func() { e.reconcile(ctx, id) })
}

// reconcile has an object be what its record says: the runtime is sent the fields that it should have and has not,
// in one update, and files are written. What fails is due again with the next call or scan.
func (e *Enforcer) reconcile(ctx context.Context, id ledger.ID) {
	defer func() {
		if r := recover(); r != nil {
			e.Observer.Observe(ctx, &observe.Panicked{
				During: "an update of the proxy's own", Object: e.about(id, crifield.Object{}), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
		}
	}()
	if id.Container != "" {
		e.update(ctx, id)
	}
	e.repair(ctx, id, ledger.Wanted)
	e.Lift(ctx, id.Pod)
}
