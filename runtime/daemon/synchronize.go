package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// resyncPeriod is how often plugins are synchronized with pods that they missed, and their
// records of removed pods are dropped, without another cause.
const resyncPeriod = 10 * time.Minute

// firstSyncTime is how long a new plugin is synchronized with pods before it becomes active.
// The remaining pods follow afterwards.
const firstSyncTime = 10 * time.Second

// trigger starts work in the background. Several notifications before it begins are one.
type trigger chan struct{}

func newTrigger() trigger { return make(trigger, 1) }

func (t trigger) notify() {
	select {
	case t <- struct{}{}:
	default:
	}
}

// synchronizes reports whether Synchronize of the member's plugin is called for older pods.
func (m member) synchronizes() bool {
	return m.synchronized != nil && m.Hooks.Has(abi.Synchronize)
}

// syncMissed synchronizes plugins with pods that they do not know, whenever there may be
// some: after a new generation, after the end of the previous one, and after the store was
// filled, which it does itself if a pod was missed. It skips a plugin whose breaker is open, and
// stops when the generation is over; the next time, or the pod's next event, tries again. It
// runs until ctx is done.
func (d *daemon) syncMissed(ctx context.Context) {
	period := time.NewTicker(resyncPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.resyncTrigger:
			d.refill(ctx)
		case <-d.syncTrigger:
		case <-period.C:
		}
		d.undoEnded(ctx)
		if g := d.current.acquire(); g != nil {
			over := func() bool { return d.current.live.Load() != g }
			for _, m := range g.members {
				if m.synchronizes() && !m.tripped() && !over() {
					_, _ = m.synchronized.Sweep(ctx, g.options, m.Member, over) // the chain reports failures
				}
			}
			g.release()
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
