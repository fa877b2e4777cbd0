package intercept

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// reserve is what is kept of the caller's deadline for sending and decoding,
// before the rest is shared between hooks and backend.
const reserve = 100 * time.Millisecond

// budget is the time that everything before the backend's turn may take: half
// of what the caller's deadline leaves, less the reserve. Without a deadline the
// plugins' time is what bounds it.
func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	now := time.Now()
	half := max(0, (deadline.Sub(now)-reserve)/2)
	return plugin.Until(ctx, now.Add(half), &plugin.TimeError{Of: "what the caller's deadline leaves for hooks", Limit: half.Round(time.Millisecond)})
}

// pluginTime begins the time of all plugins of a hook. Waiting for an object's
// earlier hooks, for the backend, and for each other is not in it.
func (i *interceptor) pluginTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return plugin.WithCallTime(ctx, i.CallTime)
}
