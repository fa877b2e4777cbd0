package plugin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// untilContext ends at a time like a context of the standard library, but takes a timer
// only when somebody first waits for its end: most calls are over long before. Of those
// that are made of each other only the one that is waited on takes one.
type untilContext struct {
	context.Context                 // what it is made of
	root            context.Context // the nearest that is no untilContext
	end             time.Time
	cause           error // of ending by itself

	mu    sync.Mutex                   // held to set timed
	timed atomic.Pointer[timedContext] // nil until somebody waits
}

// timedContext is a context that ends by itself, or when it is stopped.
type timedContext struct {
	context.Context
	stop context.CancelFunc
}

// Until returns a context like [context.WithDeadlineCause]. One that is made of another of
// this kind is to be cancelled first: it does not hear of the other's cancel. Whether its
// end came before its cancel is known only if somebody looked in between.
func Until(ctx context.Context, end time.Time, cause error) (context.Context, context.CancelFunc) {
	c := new(untilContext)
	c.begin(ctx, end, cause)
	return c, c.cancel
}

// begin makes c end with what it is made of, if that is not later.
func (c *untilContext) begin(ctx context.Context, end time.Time, cause error) {
	c.Context, c.root, c.end, c.cause = ctx, ctx, end, cause
	if outer, ok := ctx.(interface{ until() *untilContext }); ok {
		o := outer.until()
		c.root = o.root
		if !end.Before(o.end) {
			c.end, c.cause = o.end, o.cause
		}
	}
}

func (c *untilContext) until() *untilContext { return c }

// Deadline implements context.Context.
func (c *untilContext) Deadline() (time.Time, bool) {
	if sooner, ok := c.root.Deadline(); ok && sooner.Before(c.end) {
		return sooner, true
	}
	return c.end, true
}

// Done implements context.Context.
func (c *untilContext) Done() <-chan struct{} { return c.wait().Done() }

// Err implements context.Context.
func (c *untilContext) Err() error {
	if timed := c.timed.Load(); timed != nil {
		return timed.Err()
	}
	if !time.Now().Before(c.end) {
		return c.wait().Err()
	}
	return c.root.Err()
}

// ended reports whether ctx has, at a time that is now.
func ended(ctx context.Context, now time.Time) bool {
	if c, ok := ctx.(interface{ until() *untilContext }); ok && now.Before(c.until().end) {
		ctx = c.until().root
	}
	return ctx.Err() != nil
}

// Gone reports whether ctx was canceled: the caller went away. Unlike ctx.Err it does not
// look at the clock, which every call would do several times.
func Gone(ctx context.Context) bool {
	if c, ok := ctx.(interface{ until() *untilContext }); ok {
		ctx = c.until().root
	}
	return errors.Is(ctx.Err(), context.Canceled)
}

// Value implements context.Context.
func (c *untilContext) Value(key any) any {
	if timed := c.timed.Load(); timed != nil {
		if v := timed.Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// wait returns the context that ends by itself.
func (c *untilContext) wait() *timedContext {
	if timed := c.timed.Load(); timed != nil {
		return timed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	timed := c.timed.Load()
	if timed == nil {
		timed = new(timedContext)
		timed.Context, timed.stop = context.WithDeadlineCause(c.root, c.end, c.cause)
		c.timed.Store(timed)
	}
	return timed
}

func (c *untilContext) cancel() {
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
