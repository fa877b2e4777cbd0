package plugin

import (
	"context"
	"time"
)

// callContext is the context that the plugins of a call are asked with. Who does not wait
// for its end has the CallTime to look at.
type callContext struct {
	untilContext
	time CallTime
	late TimeError // its cause
}

// WithCallTime begins the time of all plugins of a call. The context is one of [Until].
func WithCallTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	all, now := limit+maxWait, time.Now()
	c := &callContext{time: CallTime{limit: limit, begun: now}, late: TimeError{"the time of all plugins of a call and of waiting", all}}
	c.begin(ctx, now.Add(all), &c.late)
	return c, c.cancel
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callTimeKey{}) {
		return &c.time
	}
	return c.untilContext.Value(key)
}
