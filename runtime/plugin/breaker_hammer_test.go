package plugin_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Calls, tries and looks at the status from many goroutines. A plugin that fails
// all the time is asked at most maxFaults times and what was under way by then.
func TestBreakerHammer(t *testing.T) {
	var now, asked atomic.Int64
	log := observe.Discard()
	breaker := plugin.NewBreaker(log, "10-a", func() time.Time { return time.Unix(0, now.Load()) })
	var healthy atomic.Bool
	m := member("10-a", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		asked.Add(1)
		if healthy.Load() {
			return nil
		}
		return errFault
	})
	m.Breaker = breaker
	chain := plugin.NewChain(log, 2, m)
	const workers, calls = 8, 2000
	hammer := func() {
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range calls {
					_, _ = chain.Dispatch(t.Context(), nil, &subject{hook: pre})
					_ = breaker.Status()
				}
			})
		}
		all.Wait()
	}
	hammer()
	if n := asked.Load(); n < 5 || n > 5+workers {
		t.Errorf("a plugin that only fails was asked %d times", n)
	}
	if s := breaker.Status().State; s != plugin.Open {
		t.Errorf("the breaker is %v", s)
	}
	healthy.Store(true)
	now.Add(int64(time.Hour))
	hammer()
	if s := breaker.Status(); s.State != plugin.Closed || asked.Load() < calls {
		t.Errorf("the breaker is %+v and the plugin was asked %d times", s, asked.Load())
	}
}
