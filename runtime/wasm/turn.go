package wasm

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// turns bounds how many guests run at a time.
type turns struct {
	*semaphore.Weighted // one for each that runs
	size                int
}

func newTurns(size int) turns { return turns{semaphore.NewWeighted(int64(size)), size} }

// take waits for a turn, as long as ctx and the budget let it.
func (t turns) take(ctx context.Context, budget *plugin.Budget) error {
	if t.TryAcquire(1) {
		return nil
	}
	defer budget.Waited(budget.Wait())
	ctx, end := budget.WaitContext(ctx)
	defer end()
	if t.Acquire(ctx, 1) != nil {
		return fmt.Errorf("%w: waiting for one of the %d guests that may run at a time: %w", plugin.ErrBusy, t.size, context.Cause(ctx))
	}
	return nil
}

func (t turns) end() { t.Release(1) }

// A plugin is slow while a call of it has lately run for longer than slowCall.
const (
	slowCall = 5 * time.Millisecond
	slowFor  = time.Second
)

// turn is a guest's place among those that run.
type turn struct {
	of   *guests
	slow bool // it is one of those that slow plugins share
}

// takeTurn waits until few enough guests run: of this plugin, of slow plugins if this is one,
// then of all.
func (p *guests) takeTurn(ctx context.Context, budget *plugin.Budget) (t turn, err error) {
	if err = p.share.take(ctx, budget); err != nil {
		return t, err
	}
	t = turn{p, p.slow()} // it may have waited for the call that shows it
	if t.slow {
		if err = p.slows.take(ctx, budget); err != nil {
			p.share.end()
			return t, err
		}
	}
	if err = p.turns.take(ctx, budget); err != nil {
		t.leave()
	}
	return t, err
}

// end lets the next one run.
func (t turn) end() {
	t.of.turns.end()
	t.leave()
}

func (t turn) leave() {
	if t.slow {
		t.of.slows.end()
	}
	t.of.share.end()
}

// slow reports whether the plugin is. A call that nobody had to look at the clock for was
// quick, so most plugins never are, and this costs them nothing.
func (p *guests) slow() bool {
	last := p.lastSlow.Load()
	return last != 0 && time.Since(time.Unix(0, last)) < slowFor
}

// judge notes whether a call was slow, as far as anybody looked at the clock in it.
func (p *guests) judge(m *meter) {
	if !m.seen.IsZero() && m.seen.Sub(m.start) > slowCall {
		p.lastSlow.Store(m.seen.UnixNano())
	}
}

// DefaultRunning is how many guests may serve a hook at a time: as many as there are
// processors for Go, and two if there is one.
func DefaultRunning() int { return max(2, runtime.GOMAXPROCS(0)) }

// share is how many of them may be of one plugin, and of all slow plugins together: one
// less, so that those that do nothing but run leave a processor to the proxy and a turn to the
// others.
func (t turns) share() int { return max(1, t.size-1) }
