package wasm

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// turns bounds how many guests run at a time. A token is in it for each that does.
type turns chan struct{}

// take waits for a turn, as long as ctx lets it.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	defer plugin.CallTimeOf(ctx).Waited(time.Now())
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for one of the %d guests that may run at a time: %w", plugin.ErrBusy, cap(t), context.Cause(ctx))
	}
}

func (t turns) end() { <-t }

// DefaultRunning is how many guests may serve a hook at a time: as many as there are
// processors for Go, and two if there is one.
func DefaultRunning() int { return max(2, runtime.GOMAXPROCS(0)) }

// share is how many of them may be of one plugin: one less, so that a plugin that
// does nothing but run leaves a processor to the proxy and a turn to the others.
func (t turns) share() int { return max(1, cap(t)-1) }
