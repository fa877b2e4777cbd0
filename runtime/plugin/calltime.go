package plugin

import (
	"context"
	"time"
)

// maxWait is how long the plugins of one call may wait for others in all: for an instance,
// and for one of the turns in which guests run.
const maxWait = 5 * time.Second

// CallTime is the time that all plugins of one call may take together. What they wait
// for each other is not in it: on a node that starts all its pods at once nothing would be
// left to those that have done nothing yet. It serves one goroutine. A nil CallTime has no end.
type CallTime struct {
	limit, spent time.Duration
	begun        time.Time     // until the first plugin is asked, which is at once; zero then
	start        time.Time     // of the plugin that is asked; zero if none is
	waited       time.Duration // by that plugin
}

type callTimeKey struct{}

// CallTimeOf returns the time that ctx is under, nil if none.
func CallTimeOf(ctx context.Context) *CallTime {
	t, _ := ctx.Value(callTimeKey{}).(*CallTime)
	return t
}

// Wait is a wait of the plugin that is asked, from its beginning.
type Wait struct {
	since  time.Time
	before time.Duration // that the plugin had waited until then
}

// Wait begins a wait, which Waited ends. To wait is to look at the context, too, which ends
// when all have waited too long.
func (t *CallTime) Wait() Wait {
	w := Wait{since: time.Now()}
	if t != nil {
		w.before = t.waited
	}
	return w
}

// Waited says that the plugin did nothing but wait since w began. Waits may lie within each
// other: the outermost counts, and those within it do not count again.
func (t *CallTime) Waited(w Wait) {
	if t != nil {
		t.waited = w.before + time.Since(w.since)
	}
}

// Runs returns since when the plugin that is asked runs: a time that is as long ago as the
// plugin has run, without its waits. It is zero if no plugin is asked.
func (t *CallTime) Runs() time.Time {
	if t == nil || t.start.IsZero() {
		return time.Time{}
	}
	return t.start.Add(t.waited)
}

// Left is how much of the time there is for a plugin that runs since the time that Runs
// returns.
func (t *CallTime) Left() time.Duration { return t.limit - t.spent }

// Err returns a *TimeError if the time is up.
func (t *CallTime) Err() error {
	if t == nil || t.spent+t.ran() <= t.limit {
		return nil
	}
	return t.used()
}

func (t *CallTime) used() *TimeError { return &TimeError{"the time of all plugins of a call", t.limit} }

// ran is how long the plugin that is asked has run.
func (t *CallTime) ran() time.Duration {
	if t.start.IsZero() {
		return 0
	}
	return time.Since(t.start) - t.waited
}

// next returns when the next plugin is asked: now.
func (t *CallTime) next() time.Time {
	if t == nil || t.begun.IsZero() {
		return time.Now()
	}
	begun := t.begun
	t.begun = time.Time{}
	return begun
}

// begin says that a plugin is asked.
func (t *CallTime) begin(now time.Time) {
	if t != nil {
		t.start, t.waited = now, 0
	}
}

// end says that it has answered, and returns how long it took since begin, without what
// it waited.
func (t *CallTime) end(begun, now time.Time) time.Duration {
	took := now.Sub(begun)
	if t != nil {
		took -= t.waited
		t.spent += took
		t.start, t.waited = time.Time{}, 0
	}
	return took
}

// within returns ctx with what is left of the time, from now on, as its deadline.
func (t *CallTime) within(ctx context.Context, now time.Time) (context.Context, context.CancelFunc) {
	if t == nil {
		return ctx, func() {}
	}
	return Until(ctx, now.Add(t.limit-t.spent), t.used())
}
