package slots

import (
	"context"
	"time"
)

// resyncPeriod is how often plugins are synchronized with pods that they missed, and their
// records of removed pods are dropped, without another cause.
const resyncPeriod = 10 * time.Minute

// FirstSyncTime is how long a new plugin is synchronized with pods before it becomes active.
// The remaining pods follow afterwards.
const FirstSyncTime = 10 * time.Second

// syncMissed synchronizes plugins with pods that they do not know, whenever there may be
// some: after a new generation, after the end of the previous one, and after the store was
// filled, which it does itself if a pod was missed. It skips a plugin whose breaker is open, and
// stops when the generation is over; the next time, or the pod's next event, tries again. It
// runs until ctx is done.
func (c *generations) syncMissed(ctx context.Context) {
	period := time.NewTicker(resyncPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Reconciler.Resync:
			c.Reconciler.Refill(ctx)
		case <-c.Reconciler.Sync:
		case <-period.C:
		}
		c.Reconciler.UndoEnded(ctx)
		if g := c.acquire(); g != nil {
			over := func() bool { return c.live.Load() != g }
			for _, m := range g.members {
				if m.Synchronizes() && !m.Tripped() && !over() {
					_, _ = m.Synchronized.Sweep(ctx, g.options, m.Member, over) // the chain reports failures
				}
			}
			g.Release()
		}
	}
}
