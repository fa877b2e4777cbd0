package slots

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
)

// ticks calls plugins again and again, beside calls.
type ticks struct {
	generations *generations
	running     sync.WaitGroup  // the ticks of all plugins
	stopping    <-chan struct{} // closed when the daemon has to stop
}

// begin begins the ticks of a plugin, over all generations that it is in, and returns a
// function that ends them. The period is the operator's; 0 leaves it to the plugin. A tick that has begun is not cut short.
// None begins once the daemon is stopping, or while the plugin's breaker is open.
func (t *ticks) begin(ctx context.Context, of *loader.Loaded, period time.Duration) (end func()) {
	manifest := of.Manifest()
	period = cmp.Or(period, time.Duration(manifest.TickMS)*time.Millisecond)
	if !manifest.HookSet().Has(abi.Tick) || period <= 0 {
		return func() {}
	}
	ended := make(chan struct{})
	t.running.Go(func() {
		for next := ""; ; {
			select {
			case <-ended:
				return
			case <-t.stopping:
				return
			case <-time.After(period):
			}
			g := t.generations.acquire()
			if g == nil {
				continue
			}
			for _, m := range g.members { // of the present generation, if the plugin is in that
				if m.Loaded == of && m.Hooks.Has(abi.Tick) && !m.Tripped() {
					next = intercept.Tick(context.WithoutCancel(ctx), g.options, m.Member, next)
					break
				}
			}
			g.Release()
		}
	})
	return func() { close(ended) }
}
