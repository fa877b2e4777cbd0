package plugin

import (
	"context"
	"sync"
	"time"
)

// callContext is the context that the plugins of a call are asked with. Most of them
// answer at once: it makes a context that ends by itself, with all that this takes, when
// somebody first waits for its end. Who does not wait has the CallTime to look at.
type callContext struct {
	context.Context // the caller's
	time            CallTime
	begun           time.Time

	mu    sync.Mutex
	timed context.Context // nil until somebody waits
	stop  context.CancelFunc
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
	if c.timed == nil {
		limit := c.time.limit + maxWait
		c.timed, c.stop = context.WithDeadlineCause(c.Context, c.end(), &TimeError{"the time of all plugins of a call and of waiting", limit})
	}
	return c.timed.Done()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		return c.Context
	}
	return c.timed
}

func (c *callContext) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.stop = canceled, func() {}
	}
	c.stop()
}

// canceled is what a context is that nobody waited for until its end.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
