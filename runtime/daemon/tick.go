package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
)

// tick begins the ticks of a plugin, over all generations that it is in, and returns a
// function that ends them. A tick that has begun is not cut short. None begins once the
// daemon is stopping.
func (d *daemon) tick(ctx context.Context, of *loaded) (end func()) {
	manifest := of.Manifest()
	period := time.Duration(manifest.TickMS) * time.Millisecond
	if !manifest.HookSet().Has(abi.Tick) || period <= 0 {
		return func() {}
	}
	ended := make(chan struct{})
	d.ticking.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-d.stopping:
				return
			case <-time.After(period):
				d.tickOnce(context.WithoutCancel(ctx), of)
			}
		}
	})
	return func() { close(ended) }
}

// tickOnce calls the plugin with the options of the present generation, if it is in that.
// A plugin whose breaker is open is not called.
func (d *daemon) tickOnce(ctx context.Context, of *loaded) {
	g := d.current.acquire()
	if g == nil {
		return
	}
	defer g.release()
	for _, m := range g.members {
		if m.loaded == of && m.Hooks.Has(abi.Tick) && !m.tripped() {
			intercept.Tick(ctx, g.options, m.Member)
		}
	}
}
