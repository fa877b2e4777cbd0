package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
)

// limiter bounds how long a guest runs. It is all that the rest of the package
// knows of how that is done.
type limiter interface {
	// prepare sets a runtime up so that its guests can be stopped.
	prepare(wazero.RuntimeConfig) wazero.RuntimeConfig
	// start begins the time of one call: what runs under the context that it
	// returns ends when ctx is done, or d later. cancel frees what it holds.
	start(ctx context.Context, d time.Duration) (limited context.Context, cancel context.CancelFunc)
}

// closeOnDone lets wazero close an instance when its context is done. The guest
// notices when a loop jumps back, so recursion is not bounded by it.
type closeOnDone struct{}

func (closeOnDone) prepare(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCloseOnContextDone(true)
}

func (closeOnDone) start(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return ctx, func() {} // a second timer would cost and change nothing
	}
	return context.WithTimeoutCause(ctx, d, timeLimitError(d))
}

// unlimited is no limiter.
type unlimited struct{}

func (unlimited) prepare(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }

func (unlimited) start(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

// timeLimitError is the cause of a context that ended because the guest's own
// time was up.
type timeLimitError time.Duration

// Error names the limit.
func (e timeLimitError) Error() string {
	return fmt.Sprintf("ran longer than its time limit of %v", time.Duration(e))
}

// Unwrap makes it a context.DeadlineExceeded.
func (e timeLimitError) Unwrap() error { return context.DeadlineExceeded }

// stopped says why a call under ctx, which is done, ended before the guest did.
// The caller's leaving is context.Canceled, and nobody's failure.
func stopped(ctx context.Context) error {
	if own, ok := context.Cause(ctx).(timeLimitError); ok {
		return own
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("cut off because the caller went away: %w", ctx.Err())
	}
	return fmt.Errorf("ran longer than the call allows: %w", ctx.Err())
}
