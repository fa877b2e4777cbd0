package wasm

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// turns bounds how many guests run at a time.
type turns struct {
	*semaphore.Weighted // one for each that runs
	size                int
}

func newTurns(size int) turns { return turns{semaphore.NewWeighted(int64(size)), size} }

// take waits for a turn, as long as ctx lets it.
func (t turns) take(ctx context.Context) error {
	if t.TryAcquire(1) {
		return nil
	}
	calls := plugin.CallTimeOf(ctx)
	defer calls.Waited(calls.Wait())
	if t.Acquire(ctx, 1) != nil {
		return fmt.Errorf("%w: waiting for one of the %d guests that may run at a time: %w", plugin.ErrBusy, t.size, context.Cause(ctx))
	}
	return nil
}

func (t turns) end() { t.Release(1) }

// DefaultRunning is how many guests may serve a hook at a time: as many as there are
// processors for Go, and two if there is one.
func DefaultRunning() int { return max(2, runtime.GOMAXPROCS(0)) }

// share is how many of them may be of one plugin: one less, so that a plugin that
// does nothing but run leaves a processor to the proxy and a turn to the others.
func (t turns) share() int { return max(1, t.size-1) }
