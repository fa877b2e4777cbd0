package reconcile

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
)

// scanPeriod is how often a part of the cgroup files is compared with the ledger. A tenth of it more or
// less keeps the nodes of a cluster apart.
const scanPeriod = 30 * time.Second

// scanFiles repairs cgroup files, has systemd keep what it did not yet, the journal what it lacks, and plugins know what the
// runtime did not answer of the node, until ctx is done.
func (r *Reconciler) scanFiles(ctx context.Context) {
	for scan := uint64(0); ; {
		select {
		case <-time.After(r.timing.ScanPeriod*9/10 + rand.N(r.timing.ScanPeriod/5)):
			r.dropGone(ctx)
			r.Enforcer().ScanPart(ctx, scan)
			scan++
			r.systemd.Retry(ctx)
			r.Ledger.Keep()
			r.Backend.DescribeChanged(ctx)
		case <-r.reloaded:
			r.Enforcer().Repair(ctx, "a reload of systemd")
		case <-ctx.Done():
			return
		}
	}
}

// Fill fills the store, and brings the ledger and the cgroup files to where the runtime is.
func (r *Reconciler) Fill(ctx context.Context) {
	ctx, cancel := r.Cut.Load().Context(ctx)
	defer cancel()
	if !r.acquire(ctx) {
		return
	}
	defer r.release()
	r.Backend.Fill(ctx)
	r.Backend.Describe(ctx)
	if !r.Backend.Behind() && r.Following.Load() {
		r.Enforcer().DropGone()
		ctx, cancel := context.WithTimeout(ctx, updatesWait)
		defer cancel()
		r.endWishes(ctx) // before Repair would write their values again
		r.Enforcer().Repair(ctx, "a new connection to the container runtime")
	}
}

// updatesWait is how long what follows waits for values to be sent to the runtime and written. No plugin is active until the store is
// filled, and a runtime that answers lists may not answer updates. They go on in the queues of their containers.
const updatesWait = time.Second

// acquire waits until nobody else fills the store or undoes values, and keeps others from it until
// release is called: the records of pods that the store lacks are dropped, and resources of
// containers that it lacks are not reset. It reports false if ctx is done.
func (r *Reconciler) acquire(ctx context.Context) bool {
	select {
	case r.exclusive <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Reconciler) release() { <-r.exclusive }

// UndoEnded has the values undone that plugins cannot want any more.
func (r *Reconciler) UndoEnded(ctx context.Context) {
	if r.Following.Load() && r.Backend.Behind() { // the containers are not known yet
		return
	}
	if !r.acquire(ctx) {
		return
	}
	defer r.release()
	ctx, cancel := context.WithTimeout(ctx, updatesWait)
	defer cancel()
	r.endWishes(ctx)
}

// endWishes ends the wishes of plugins that cannot want them any more.
func (r *Reconciler) endWishes(ctx context.Context) {
	if present := r.Present.Load(); present != nil {
		intercept.End(ctx, r.Enforcer(), func(plugin string) *intercept.Generation { return (*present)[plugin] }).Wait(ctx)
	}
}
