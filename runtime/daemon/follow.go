package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// following is how far the store follows the backend.
type following uint8

const (
	unfollowed following = iota // there is no plugin: the store is empty, and every byte passes
	filling                     // it follows calls, and is being filled with what the backend has
	filled                      // or the backend cannot be asked: then hooks read through
)

// fill fills the store in the background, now that it follows calls. No plugin gets an event
// until that is done.
func (s *slots) fill(ctx context.Context) {
	d := s.daemon
	s.store = filling
	s.fills++
	fill := s.fills
	s.jobs.Go(func() {
		d.fill(ctx)
		s.post(func(context.Context) {
			switch {
			case s.store == unfollowed:
				s.forget(ctx)
			case fill == s.fills: // else another one began since
				s.store = filled
			}
		})
	})
}

// unfollow forgets everything, since the last plugin is gone or all are bypassed. Their values are undone first, for
// which the store has to know the containers.
func (s *slots) unfollow(ctx context.Context) {
	d := s.daemon
	if len(s.published) > 0 {
		s.generation++
	}
	s.store, s.published = unfollowed, nil
	d.current.swap(nil)
	d.following.Store(false)
	if !s.bypassed {
		s.observer.Observe(ctx, &observe.NoPlugins{})
	}
	d.bypass.undoing.begin()
	s.jobs.Go(func() {
		d.undoEnded(ctx)
		d.bypass.undoing.end()
		s.forget(ctx)
	})
}

// forgetTime is how long the store stays for updates that bring kubelet's values back. Eight run at a time: those of a full
// node may take a second each.
const forgetTime = 5 * time.Minute

// forget clears the store in the background, if there is no plugin, once the updates that are queued have ended: they name
// what the store has of their containers.
func (s *slots) forget(ctx context.Context) {
	d := s.daemon
	s.jobs.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, forgetTime)
		defer cancel()
		_ = d.queue.Drain(ctx) // an update that does not end must not keep the store for ever
		s.post(func(context.Context) {
			if s.store == unfollowed {
				d.store.Clear()
			}
		})
	})
}

// bypass takes all plugins out of the way, or loads them as at a start. Their key-value state and metrics go on.
func (s *slots) bypass(ctx context.Context, on bool) {
	s.bypassed, s.changed = on, true
	for _, p := range s.order {
		if on {
			s.unload(p)
		} else {
			s.describe(ctx, p, p.description)
		}
	}
	if on {
		s.tellPresent()
		s.unfollow(ctx)
	}
}

// postBypass has the owner of the slots begin or end the bypass.
func (s *slots) postBypass(_ context.Context, on bool) {
	s.post(func(ctx context.Context) { s.bypass(ctx, on) })
}

// lostDelays are when the store is filled again after a call that the runtime did not answer: it
// mostly ends within a second what it had begun, and some go on without their caller.
var lostDelays = []time.Duration{time.Second, 9 * time.Second}

// missed has the store filled again after a call that it did not follow.
func (d *daemon) missed(answered bool) {
	if answered {
		d.resyncTrigger.notify()
	} else {
		d.lostTrigger.notify()
	}
}

// followLost fills the store again after calls that the runtime did not answer, until ctx is done.
// Calls that come meanwhile begin it anew. A process before this one may have left some.
func (d *daemon) followLost(ctx context.Context) {
	for _, delay := range d.startFills {
		time.AfterFunc(delay, d.resyncTrigger.notify)
	}
	for {
		select {
		case <-d.lostTrigger:
		case <-ctx.Done():
			return
		}
		for _, delay := range lostDelays {
			select {
			case <-time.After(delay):
				d.resyncTrigger.notify()
			case <-ctx.Done():
				return
			}
		}
	}
}

// refill brings the store up to date after the backend came back, which may be
// another version of itself by now. Without plugins it asks again for what the backend could not
// undo.
func (d *daemon) refill(ctx context.Context) {
	if d.following.Load() {
		d.fill(ctx)
		d.syncTrigger.notify()
	} else if d.valuesLeft() {
		d.dropGone(ctx)
		d.undoEnded(ctx)
		d.enforcer().Scan(ctx)
	}
}

// valuesLeft reports whether there are values to be undone, and no plugin may want any: there is none, or all are bypassed.
func (d *daemon) valuesLeft() bool {
	present := d.present.Load()
	return present != nil && len(*present) == 0 && !d.ledger.Empty()
}

// dropGone drops the records of pods and containers that have gone while values are left: the daemon's
// store follows none then. The runtime is asked for those that there are.
func (d *daemon) dropGone(ctx context.Context) {
	if !d.valuesLeft() || !d.settle(ctx) {
		return
	}
	defer d.settled() // till then no plugin becomes active and leaves a record
	left := d.enforcer()
	left.Store = pods.NewStoreWith(enforce.KernelOf(d.cgroups))
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	if complete(left.Store.Sync(ctx, left.Backend)) && !d.following.Load() {
		left.DropGone()
	}
}
