package wasm

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// limiter bounds how many guests run at a time.
type limiter struct {
	*semaphore.Weighted // one for each that runs
	size                int
}

func newLimiter(size int) limiter { return limiter{semaphore.NewWeighted(int64(size)), size} }

// acquire waits until one more may run, as long as ctx and the budget let it wait in a queue.
func (l limiter) acquire(ctx context.Context, budget *plugin.Budget) error {
	if l.TryAcquire(1) {
		return nil
	}
	defer budget.Wait()()
	ctx, end := budget.QueueContext(ctx)
	defer end()
	if l.Acquire(ctx, 1) != nil {
		return fmt.Errorf("%w: waiting for one of the %d guests that may run at a time: %w", plugin.ErrBusy, l.size, context.Cause(ctx))
	}
	return nil
}

// allButOne is the limit of one plugin's guests, and of those of all slow plugins together: so
// guests that do nothing but run leave a processor to the proxy and one guest to the others.
func (l limiter) allButOne() int { return max(1, l.size-1) }

// A plugin is slow while a call of it has lately run for longer than slowCall.
const (
	slowCall = 5 * time.Millisecond
	slowFor  = time.Second
)

// permit is a guest's place among those that run.
type permit struct {
	of   *guests
	slow bool // it is one of those that slow plugins have together
}

// acquire waits until few enough guests run: of this plugin, of slow plugins if this is one,
// then of all.
func (p *guests) acquire(ctx context.Context, budget *plugin.Budget) (s permit, err error) {
	if err = p.perPlugin.acquire(ctx, budget); err != nil {
		return s, err
	}
	s = permit{p, p.isSlow()} // it may have waited for the call that shows it
	if s.slow {
		if err = p.slow.acquire(ctx, budget); err != nil {
			p.perPlugin.Release(1)
			return s, err
		}
	}
	if err = p.running.acquire(ctx, budget); err != nil {
		s.releasePlugin()
	}
	return s, err
}

// release lets the next one run.
func (s permit) release() {
	s.of.running.Release(1)
	s.releasePlugin()
}

func (s permit) releasePlugin() {
	if s.slow {
		s.of.slow.Release(1)
	}
	s.of.perPlugin.Release(1)
}

// isSlow reports whether the plugin is slow. A call that nobody had to look at the clock for was
// quick, so most plugins never are, and this costs them nothing.
func (p *guests) isSlow() bool {
	last := p.lastSlow.Load()
	return last != nil && time.Since(*last) < p.slowFor
}
