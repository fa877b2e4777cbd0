package intercept

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// reserve is what is kept of the caller's deadline for sending and decoding,
// before the rest is shared between hooks and backend.
const reserve = 100 * time.Millisecond

// hookContext returns the context of everything before the backend's turn. It ends when
// half of what the caller's deadline leaves is used up, less the reserve. Without a
// deadline the plugins' budget is the bound.
func hookContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	now := time.Now()
	half := max(0, (deadline.Sub(now)-reserve)/2)
	late := &plugin.TimeError{Of: "what the caller's deadline leaves for hooks", Limit: half.Round(time.Millisecond)}
	return context.WithDeadlineCause(ctx, now.Add(half), late)
}
