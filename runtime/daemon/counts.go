package daemon

import (
	"context"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// counts is how often plugins were called, by hook, and how often they failed: also those
// calls that an open circuit breaker did not let through. A rejection is no failure. It is a
// sink of events.
type counts struct {
	called, failed [64]atomic.Uint64
}

// Wants implements observe.Observer.
func (c *counts) Wants(k observe.Kind) bool { return k == observe.KindHookCalled }

// Observe implements observe.Observer.
func (c *counts) Observe(_ context.Context, e observe.Event) {
	called, ok := e.(*observe.HookCalled)
	if !ok {
		return
	}
	c.called[called.Hook].Add(1)
	if called.Outcome != observe.OK && called.Outcome != observe.Rejected {
		c.failed[called.Hook].Add(1)
	}
}

// byHook returns the counts that are not zero, by the hooks' names.
func byHook(of *[64]atomic.Uint64) map[string]uint64 {
	all := map[string]uint64{}
	for _, h := range abi.Hooks {
		if n := of[h.Hook].Load(); n > 0 {
			all[h.Name] = n
		}
	}
	return all
}
