package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// sweepPeriod is how often plugins are told of pods that were missed, and what
// they know of removed ones is forgotten, though nothing happened.
const sweepPeriod = 10 * time.Minute

// sweepTime is how long plugins that were just loaded are told of pods, all of them
// together, before they are in force. Meanwhile no other file counts, be it the one
// that mends them.
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

// synchronize tells the plugins that were just loaded of every pod of the store,
// before they get an event. One that fails there is not loaded: the member is the
// one before it, or stands for its absence. Pods that are made meanwhile, or that
// there was no time for, come with their first event, or with a sweep.
func (d *daemon) synchronize(ctx context.Context, members []member) []member {
	options, until := d.options(members), time.Now().Add(d.sweepTime)
	var settled []member
	for _, m := range members {
		err := d.introduce(ctx, options, m, until)
		if err == nil {
			m.loaded.settle()
			settled = append(settled, m)
			continue
		}
		err = fmt.Errorf("loading plugin %s: %s: %w", m.ID, abi.Synchronize, err)
		d.log.ErrorContext(ctx, "plugin not loaded", "err", err)
		if before, ok := d.loader.revert(m, err); ok {
			settled = append(settled, before)
		}
	}
	return settled
}

// introduce tells a plugin that was just loaded of pods, of one at least.
func (d *daemon) introduce(ctx context.Context, o intercept.Options, m member, until time.Time) error {
	if !m.loaded.fresh || !m.synchronizes() {
		return nil
	}
	late := func() bool { return !time.Now().Before(until) }
	left, err := m.loaded.synchronized.Sweep(ctx, o, m.Member, late)
	if err == nil && left > 0 {
		d.log.WarnContext(ctx, "plugin is in force before it was told of all pods", "plugin", m.ID, "left", left)
	}
	return err
}

// settle makes the plugin the one that counts.
func (l *loaded) settle() {
	l.fresh = false
	if l.before != nil {
		l.before.release()
		l.before = nil
	}
}

// revert puts the plugin that m was to replace back into its place, and returns
// the member that there is instead of m, if there is any.
func (l *loader) revert(m member, reason error) (_ member, ok bool) {
	before := m.loaded.before
	m.loaded.before = nil
	delete(l.loaded, m.ID)
	m.loaded.release()
	switch {
	case before != nil:
		l.loaded[m.ID] = before
		return l.member(m.description, before), true
	case m.Policy == plugin.Fail:
		return l.refusing(m.description, reason), true
	}
	return member{}, false
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
