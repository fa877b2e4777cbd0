package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// sweepPeriod is how often plugins are told of pods that were missed, and what
// they know of removed ones is forgotten, though nothing happened.
const sweepPeriod = 10 * time.Minute

// sweepTime is how long a plugin that was just loaded is told of pods before it becomes
// active. It is told of the rest then.
const sweepTime = 10 * time.Second

// wishes are for something that is done aside. Several before it begins are one.
type wishes chan struct{}

func newWishes() wishes { return make(wishes, 1) }

func (w wishes) want() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// synchronizes reports whether the member's plugin is told of older pods.
func (m member) synchronizes() bool {
	return m.loaded.synchronized != nil && m.Hooks.Has(abi.Synchronize)
}

// synchronized is what the plugins among the members know that are told.
func synchronized(members []member) (all []*intercept.Synchronized) {
	for _, m := range members {
		if m.synchronizes() {
			all = append(all, m.loaded.synchronized)
		}
	}
	return all
}

// chained are the members as they go into a chain with these options.
func chained(o intercept.Options, members []member) []plugin.Member {
	chain := make([]plugin.Member, len(members))
	for i, m := range members {
		chain[i] = m.Member
		if m.synchronizes() {
			chain[i] = m.loaded.synchronized.Member(o, m.Member)
		}
	}
	return chain
}

// introduce tells a plugin that is not active yet of pods, of one at least. Pods that
// are made meanwhile, or that there was no time for, come with their first event, or
// with a sweep.
func (d *daemon) introduce(ctx context.Context, m member) error {
	until := time.Now().Add(d.sweepTime)
	late := func() bool { return ctx.Err() != nil || !time.Now().Before(until) } // or nobody wants it any more
	left, err := m.loaded.synchronized.Sweep(ctx, d.options([]member{m}), m.Member, late)
	if err == nil && left > 0 && ctx.Err() == nil {
		d.observer.Observe(ctx, &observe.SynchronizeIncomplete{Plugin: m.ID, Left: left})
	}
	return err
}

// sweep tells plugins of the pods that they do not know, whenever there may be
// some: after a generation took over, when the one before it has ended, and when
// the store was filled, which it does itself where a pod was missed. It runs until
// ctx is done.
func (d *daemon) sweep(ctx context.Context) {
	period := time.NewTicker(sweepPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.missed:
			d.refill(ctx)
		case <-d.sweeps:
		case <-period.C:
		}
		if g := d.current.acquire(); g != nil {
			g.sweep(ctx, func() bool { return d.current.live.Load() != g })
			g.release()
		}
	}
}

// sweep leaves a plugin alone whose breaker is open, and the rest to the next one when
// the generation is over. The chain logs failures; the next sweep, or the pod's next
// event, tries again.
func (g *generation) sweep(ctx context.Context, over func() bool) {
	for _, m := range g.members {
		if m.synchronizes() && !m.tripped() && !over() {
			_, _ = m.loaded.synchronized.Sweep(ctx, g.options, m.Member, over)
		}
	}
}

// tripped reports whether the plugin's breaker lets no call through.
func (m member) tripped() bool {
	if m.Breaker == nil {
		return false
	}
	status := m.Breaker.Status()
	return status.State != plugin.Closed && time.Now().Before(status.Until)
}
