package reconcile

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/backend"
)

// lostDelays are when the store is filled again after a call that the runtime did not answer: it
// mostly ends within a second what it had begun, and some go on without their caller.
var lostDelays = []time.Duration{time.Second, 9 * time.Second}

// Missed has the store filled again after a call that it did not follow.
func (r *Reconciler) Missed(answered bool) {
	if answered {
		r.Resync.Notify()
	} else {
		r.lost.Notify()
	}
}

// followLost fills the store again after calls that the runtime did not answer, until ctx is done.
// Calls that come meanwhile begin it anew. A process before this one may have left some.
func (r *Reconciler) followLost(ctx context.Context) {
	for _, delay := range r.timing.StartFills {
		time.AfterFunc(delay, r.Resync.Notify)
	}
	for {
		select {
		case <-r.lost:
		case <-ctx.Done():
			return
		}
		for _, delay := range lostDelays {
			select {
			case <-time.After(delay):
				r.Resync.Notify()
			case <-ctx.Done():
				return
			}
		}
	}
}

// Refill brings the store up to date after the backend came back, which may be
// another version of itself by now. Without plugins it asks again for what the backend could not
// undo.
func (r *Reconciler) Refill(ctx context.Context) {
	if r.Following.Load() {
		r.Fill(ctx)
		r.Sync.Notify()
	} else if r.valuesLeft() {
		r.dropGone(ctx)
		r.UndoEnded(ctx)
		r.Enforcer().Scan(ctx)
	}
}

// valuesLeft reports whether there are values to be undone, and no plugin may want any: there is none, or all are bypassed.
func (r *Reconciler) valuesLeft() bool {
	present := r.Present.Load()
	return present != nil && len(*present) == 0 && !r.Ledger.Empty()
}

// dropGone drops the records of pods and containers that have gone while values are left: the daemon's
// store follows none then. The runtime is asked for those that there are.
func (r *Reconciler) dropGone(ctx context.Context) {
	if !r.valuesLeft() || !r.acquire(ctx) {
		return
	}
	defer r.release() // till then no plugin becomes active and leaves a record
	if left, err := r.EnforcerOfRuntime(ctx); backend.Complete(err) && !r.Following.Load() {
		left.DropGone()
	}
}
