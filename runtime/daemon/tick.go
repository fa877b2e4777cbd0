package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
)

// ticks are those of one loaded plugin, over the generations that it is in.
type ticks struct {
	running atomic.Bool
	last    atomic.Int64 // when one was due last, in Unix nanoseconds; 0 before the first
}

// swap makes g, which may be nil, the generation of every call from now on, and
// its ticks those that come. It is for one goroutine at a time.
func (d *daemon) swap(g *generation) {
	if d.untick != nil {
		d.untick()
		d.untick = nil
	}
	if g != nil {
		d.untick = d.tick(g)
	}
	d.current.swap(g)
}

// tick begins the ticks of the generation's members, and returns how to end them:
// one that has begun is not cut short, and its generation lasts as long. None begins
// once the daemon was told to stop.
func (d *daemon) tick(g *generation) (end func()) {
	ctx, end := context.WithCancel(d.told)
	for _, m := range g.members {
		manifest := m.loaded.Manifest()
		if period := time.Duration(manifest.TickMS) * time.Millisecond; m.Hooks.Has(abi.Tick) && period > 0 {
			d.ticking.Go(func() { m.tick(ctx, g, period) })
		}
	}
	return end
}

// tick asks the plugin each period until ctx is done. One that takes longer
// misses what would begin meanwhile, and one whose breaker is open is not asked.
func (m member) tick(ctx context.Context, g *generation, period time.Duration) {
	ticks := &m.loaded.ticks
	ticks.last.CompareAndSwap(0, time.Now().UnixNano())
	for sleep(ctx, time.Until(time.Unix(0, ticks.last.Load()).Add(period))) {
		ticks.last.Store(time.Now().UnixNano())
		if m.tripped() || !ticks.running.CompareAndSwap(false, true) {
			continue
		}
		if g.acquire() {
			intercept.Tick(context.WithoutCancel(ctx), g.options, m.Member)
			g.release()
		}
		ticks.running.Store(false)
	}
}

// sleep reports whether it slept as long as it should.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
