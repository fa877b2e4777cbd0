package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// callContext is the context that the plugins of a call are asked with. Most of them
// answer at once: it makes a context that ends by itself, with all that this takes, when
// somebody first waits for its end. Who does not wait has the CallTime to look at.
type callContext struct {
	context.Context // the caller's
	time            CallTime
	begun           time.Time

	mu    sync.Mutex                   // held to set timed
	timed atomic.Pointer[timedContext] // nil until somebody waits
}

// timedContext is a context that ends by itself, or when it is stopped.
type timedContext struct {
	context.Context
	stop context.CancelFunc
}

// WithCallTime begins the time of all plugins of a call.
func WithCallTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c := &callContext{Context: ctx, time: CallTime{limit: limit}, begun: time.Now()}
	return c, c.cancel
}

// end is when the context ends by itself.
func (c *callContext) end() time.Time { return c.begun.Add(c.time.limit + maxWait) }

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) {
	if sooner, ok := c.Context.Deadline(); ok && sooner.Before(c.end()) {
		return sooner, true
	}
	return c.end(), true
}

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	timed := c.timed.Load()
	if timed == nil {
		limit := c.time.limit + maxWait
		timed = new(timedContext)
		timed.Context, timed.stop = context.WithDeadlineCause(c.Context, c.end(), &TimeError{"the time of all plugins of a call and of waiting", limit})
		c.timed.Store(timed)
	}
	return timed.Done()
}

// Err implements context.Context.
func (c *callContext) Err() error { return c.current().Err() }

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callTimeKey{}) {
		return &c.time
	}
	if v := c.current().Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// current is the context that knows whether it has ended, and of what.
func (c *callContext) current() context.Context {
	if timed := c.timed.Load(); timed != nil {
		return timed.Context
	}
	return c.Context
}

func (c *callContext) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	timed := c.timed.Load()
	if timed == nil {
		c.timed.Store(&canceled)
		return
	}
	timed.stop()
}

// canceled is what a context is that nobody waited for until its end.
var canceled = func() timedContext {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return timedContext{ctx, stop}
}()
