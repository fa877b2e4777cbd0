package plugin

import (
	"context"
	"time"
)

// maxWait is how long the plugins of one call may wait in all: for an instance, and for
// one of the guests that may run at a time.
const maxWait = 5 * time.Second

// Budget is the time that all plugins of one call may take together. The plugins' waits
// are not part of it: on a node that starts all its pods at once nothing would be left
// for plugins that have done nothing yet. Nor is what the host does between two plugins. Whoever dispatches an event makes the Budget
// and passes it on; it serves one goroutine. A nil Budget has no end.
type Budget struct {
	limit  time.Duration
	begun  time.Time     // plus the time between plugins so far
	last   time.Time     // the end of everything, waits included
	waited time.Duration // by all plugins so far
	called time.Time     // when the current plugin was called, plus its waits; zero before the first
	ended  time.Time     // when the plugin before it ended
	shadow time.Duration // that all shadows of the call had so far
}

// NewBudget returns a budget that begins now.
func NewBudget(limit time.Duration) *Budget {
	now := time.Now()
	return &Budget{limit: limit, begun: now, last: now.Add(limit + maxWait)}
}

// Wait begins a wait of the current plugin, which does nothing else until it calls ended. The outermost
// wait counts: waits within it do not count again.
func (b *Budget) Wait() (ended func()) {
	if b == nil {
		return func() {}
	}
	since, before := time.Now(), b.waited
	return func() {
		more := before + time.Since(since) - b.waited
		b.waited += more
		b.called = b.called.Add(more)
	}
}

// WaitContext returns the context of a wait: it ends when the plugins have waited too long.
func (b *Budget) WaitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if b == nil {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, b.last, b.exhausted(b.last))
}

// QueueContext returns the context of a wait in a queue of others' calls. It ends while as much
// time is left as the plugins may still run, or half of what the caller leaves if that is less. In a
// queue that does not become shorter, calls would otherwise run when it is too late for them to
// succeed, and all of them would fail.
func (b *Budget) QueueContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if b == nil {
		return ctx, func() {}
	}
	now := time.Now()
	left := max(0, b.begun.Add(b.limit+b.waited).Sub(now))
	end, cause := b.last.Add(-left), &TimeError{"the time of all plugins of a call for waiting", maxWait}
	if deadline, ok := ctx.Deadline(); ok {
		remaining := deadline.Sub(now)
		if most := remaining - min(left, remaining/2); now.Add(most).Before(end) {
			end, cause = now.Add(most), &TimeError{"what the caller's deadline leaves for waiting", most.Round(time.Millisecond)}
		}
	}
	return context.WithDeadlineCause(ctx, end, cause)
}

// Running returns when the current plugin was called. Its waits are added: the plugin
// has run since then. It is now if no plugin was called.
func (b *Budget) Running() time.Time {
	if b == nil || b.called.IsZero() {
		return time.Now()
	}
	return b.called
}

// End returns when the budget is used up if no plugin waits any more; zero if it has no end.
func (b *Budget) End() time.Time {
	if b == nil {
		return time.Time{}
	}
	end := b.begun.Add(b.limit + b.waited)
	if b.last.Before(end) {
		end = b.last
	}
	return end
}

// Err returns a *TimeError if the budget is used up.
func (b *Budget) Err() error { return b.errAt(time.Now()) }

func (b *Budget) errAt(now time.Time) error {
	if end := b.End(); !end.IsZero() && !now.Before(end) {
		return b.exhausted(end)
	}
	return nil
}

// exhausted is the error of a budget that is used up at one of its ends.
func (b *Budget) exhausted(end time.Time) *TimeError {
	if end.Equal(b.last) {
		return &TimeError{"the time of all plugins of a call and of waiting", b.limit + maxWait}
	}
	return &TimeError{"the time of all plugins of a call", b.limit}
}

// call returns when the next plugin is called: the first when the budget begins, others now.
func (b *Budget) call() time.Time {
	if b == nil {
		return time.Now()
	}
	if b.called.IsZero() {
		b.called = b.begun
	} else {
		b.called = time.Now()
		b.begun = b.begun.Add(b.called.Sub(b.ended))
	}
	b.ended = b.called
	return b.called
}

// end says that the current plugin, which was called at start, has ended now. It returns how
// long the plugin ran.
func (b *Budget) end(start, now time.Time) time.Duration {
	if b == nil {
		return now.Sub(start)
	}
	b.ended = now
	return now.Sub(b.called)
}

// Spent is how long plugins had the call, waits included.
func (b *Budget) Spent() time.Duration {
	if b.called.IsZero() {
		return 0
	}
	return b.ended.Sub(b.begun)
}

// shadowShare is the part of the time of all plugins of a call that all its shadows have beside them.
const shadowShare = 4

// forShadow returns a budget for a shadow, which begins now, between two plugins: what is left of the time for shadows, waits
// included. It is nil if that is too little to judge the shadow by. The caller says when the shadow has ended, so that the
// plugins lose nothing by it.
func (b *Budget) forShadow() (own *Budget, ended func()) {
	now := time.Now()
	if b == nil {
		return &Budget{limit: maxWait, begun: now, last: now.Add(maxWait), called: now}, func() {}
	}
	left := b.limit/shadowShare - b.shadow
	if left < fairTime {
		return nil, nil
	}
	own = &Budget{limit: left - left/4, begun: now, last: now.Add(left), called: now} // a quarter is for waiting
	return own, func() {
		took := time.Since(now)
		b.shadow += took
		b.last = b.last.Add(took)
		if b.called.IsZero() { // the first plugin's time begins with the budget, that of others when they are called
			b.begun = b.begun.Add(took)
		}
	}
}

// beside returns a budget as large as b was at first, which begins now. It ends with b.
func (b *Budget) beside() *Budget {
	if b == nil {
		return nil
	}
	own := NewBudget(b.limit)
	if b.last.Before(own.last) {
		own.last = b.last
	}
	own.called = own.begun
	return own
}
