package wasm

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// maxDelay is how much later a call may end because of what another plugin does.
const maxDelay = 50 * time.Millisecond

// TestUnrelatedCalls is what the time limit is for: while one plugin runs in a
// loop, and Go's collector wants to stop the world, the calls of another plugin go
// on. Without the limit they do not, which is the second half of the test. A busy
// machine may delay calls by itself, so the best of three counts.
func TestUnrelatedCalls(t *testing.T) {
	t.Run("limited", func(t *testing.T) {
		e := newEngine(t, Options{})
		var worst []time.Duration
		for range 3 {
			delay := delayBy(t, e)
			if delay < maxDelay || !wallClock() {
				return
			}
			worst = append(worst, delay)
		}
		t.Errorf("a looping plugin delayed the calls of another one by %v, want less than %v", worst, maxDelay)
	})
	if !wallClock() {
		return // delays are not looked at
	}
	t.Run("unlimited", func(t *testing.T) {
		if delay := delayBy(t, newEngine(t, Options{NoTimeLimit: true})); delay < maxDelay {
			t.Errorf("without a time limit the delay is %v: this test does not show what the limit is for", delay)
		}
	})
}

// delayBy returns how much the 99th percentile of 1,000 calls grows when another
// plugin loops.
func delayBy(t *testing.T, e *Engine) time.Duration {
	quiet := load(t, e, "quota", PluginOptions{Timeout: time.Minute, Instances: 4})
	loops := load(t, e, "spin", PluginOptions{Timeout: 50 * time.Millisecond})
	before := percentile(t, quiet)

	ctx, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() {
		for ctx.Err() == nil {
			callPlugin(context.WithoutCancel(ctx), loops, newEvent())
		}
	})
	background.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
		}
	})
	during := percentile(t, quiet)
	stop()
	background.Wait()
	t.Logf("99th percentile of 1,000 calls: %v, beside a looping plugin %v", before, during)
	return during - before
}

// percentile makes 1,000 calls, one each millisecond whether or not earlier ones
// have ended, and returns the 99th percentile of the time from when a call was due
// until it ended.
func percentile(t *testing.T, p plugin.Plugin) time.Duration {
	const workers, calls = 4, 250
	took := make([]time.Duration, workers*calls)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range calls {
				n := i*workers + w
				due := start.Add(time.Duration(n) * time.Millisecond)
				time.Sleep(time.Until(due))
				if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
					t.Error(err)
				}
				took[n] = time.Since(due)
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}

// TestRecursionIsBounded shows that a guest that recurses without a loop ends within its
// time, although it never recurses deeply.
func TestRecursionIsBounded(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "fork-recursion", PluginOptions{Timeout: 20 * time.Millisecond})
		_, err := callPlugin(t.Context(), p, newEvent())
		wantError(t, err, "ran longer than its time limit of 20ms: ")
	})
}

// TestFuelIsExact shows that what host functions cost counts to the unit, although it is
// not taken at once: the least fuel that suffices for calls of the host is what is counted
// of that call, and what a call with one unit less is said to have used.
func TestFuelIsExact(t *testing.T) {
	for _, interpret := range []bool{false, true} {
		e := newEngine(t, Options{Interpret: interpret})
		used := map[int64]int64{} // by the fuel that there was
		with := func(fuel int64) error {
			ev := newEvent()
			adj := plugin.NewAdjustment(ev.Hook(), 2)
			err := load(t, e, "repeat", PluginOptions{Set: abi.Limits{Fuel: fuel}, Config: []byte("now")}).Call(t.Context(), nil, ev, adj)
			var calls int64
			if used[fuel], calls = adj.Used(); err == nil && calls != 900 {
				t.Errorf("interpreter %v: %d host calls are counted, want 900", interpret, calls)
			}
			return err
		}
		least := int64(sort.Search(200_000, func(fuel int) bool { return fuel > 0 && with(int64(fuel)) == nil }))
		if least < 900*hostCallFuel || least > 2*900*hostCallFuel {
			t.Fatalf("interpreter %v: %d units suffice for 900 host calls", interpret, least)
		}
		wantError(t, with(least-1), fmt.Sprintf("used %d units of fuel, its limit is %d", least, least-1))
		if used[least] != least {
			t.Errorf("interpreter %v: the call is said to have used %d units, not %d", interpret, used[least], least)
		}
	}
}
