package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// bench is one plugin behind a breaker whose clock the test moves.
type bench struct {
	t       *testing.T
	now     time.Time
	answer  function // what the plugin does next
	asked   int
	log     bytes.Buffer
	breaker *plugin.Breaker
	chain   *plugin.Chain
	seen    []observe.HookCalled
}

func newBench(t *testing.T, policy plugin.FailurePolicy) *bench {
	b := &bench{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	logger := slogsink.New(slog.New(slog.NewTextHandler(&b.log, nil)))
	b.breaker = plugin.NewBreaker(logger, "10-a", func() time.Time { return b.now })
	m := member("10-a", policy, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		b.asked++
		return b.answer(ctx, ev, adj)
	})
	m.Breaker, m.Hooks = b.breaker, m.Hooks|abi.HookSetOf(abi.Tick)
	b.chain = plugin.NewChain(observe.Sinks{logger, onCall(func(c *observe.HookCalled) { b.seen = append(b.seen, *c) })}, 2, m)
	return b
}

// call has the plugin asked once, and returns whether it was, and the call's error.
func (b *bench) call(ctx context.Context, hook abi.Hook, f function) (asked bool, err error) {
	b.t.Helper()
	b.answer = f
	before := b.asked
	_, err = b.chain.Dispatch(ctx, nil, &subject{hook: hook})
	return b.asked > before, err
}

func (b *bench) want(state plugin.BreakerState, faults int, wait time.Duration) {
	b.t.Helper()
	s := b.breaker.Status()
	var until time.Time
	if wait > 0 {
		until = b.now.Add(wait)
	}
	if s.State != state || s.Faults != faults || !s.Until.Equal(until) {
		b.t.Errorf("breaker is %v after %d faults until %v, want %v after %d until %v", s.State, s.Faults, s.Until, state, faults, until)
	}
}

var errFault = errors.New("out of cheese\nstack of the fault")

// What a plugin can do in a call.
func failing(context.Context, plugin.Event, *plugin.Adjustment) error { return errFault }
func serving(context.Context, plugin.Event, *plugin.Adjustment) error { return nil }
func panicking(context.Context, plugin.Event, *plugin.Adjustment) error {
	panic("out of cheese")
}
func rejecting(context.Context, plugin.Event, *plugin.Adjustment) error {
	return &plugin.Rejection{Reason: "no"}
}

const pre, stopped = abi.PreCreateContainer, abi.PostStopContainer

// TestBreakerTicks: ticks that succeed keep no breaker closed whose calls fail, and those that fail open one.
func TestBreakerTicks(t *testing.T) {
	b := newBench(t, plugin.Ignore)
	for range 5 {
		b.call(t.Context(), abi.Tick, serving)
		b.call(t.Context(), pre, failing)
	}
	b.want(plugin.Open, 5, time.Second)
	b.now = b.now.Add(time.Second)
	b.call(t.Context(), abi.Tick, serving)
	b.want(plugin.Closed, 5, 0)
	b.call(t.Context(), pre, failing)
	b.want(plugin.Open, 6, 2*time.Second)
	b.now = b.now.Add(2 * time.Second)
	b.call(t.Context(), pre, serving)
	b.want(plugin.Closed, 0, 0)
	for range 4 {
		b.call(t.Context(), abi.Tick, failing)
	}
	b.call(t.Context(), abi.Tick, serving)
	b.want(plugin.Closed, 0, 0)
	for range 5 {
		b.call(t.Context(), abi.Tick, failing)
	}
	b.want(plugin.Open, 5, time.Second)
	b.now = b.now.Add(time.Second)
	b.call(t.Context(), abi.Tick, serving)
	b.want(plugin.Closed, 0, 0)
}

func TestBreakerOpensAfterFaultsInARow(t *testing.T) {
	late := func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error { <-ctx.Done(); return ctx.Err() }
	for _, tt := range []struct {
		name  string
		calls []function
		state plugin.BreakerState
		count int
	}{
		{"four faults", []function{failing, failing, failing, failing}, plugin.Closed, 4},
		{"five faults", []function{failing, failing, failing, failing, failing}, plugin.Open, 5},
		{"panics", []function{panicking, panicking, panicking, panicking, panicking}, plugin.Open, 5},
		{"a success between", []function{failing, failing, failing, failing, serving, failing}, plugin.Closed, 1},
		{"a refusal between", []function{failing, failing, failing, failing, rejecting, failing}, plugin.Closed, 1},
		{"refusals only", []function{rejecting, rejecting, rejecting, rejecting, rejecting, rejecting}, plugin.Closed, 0},
		{"errors of any kind", []function{failing, panicking, failing, panicking, failing}, plugin.Open, 5},
		{"its own time", []function{late, failing, failing, failing, failing}, plugin.Open, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, plugin.Ignore)
			for _, f := range tt.calls {
				if asked, _ := b.call(t.Context(), pre, f); !asked {
					t.Error("the plugin was not asked")
				}
			}
			wait := time.Duration(0)
			if tt.state == plugin.Open {
				wait = time.Second
			}
			b.want(tt.state, tt.count, wait)
		})
	}
}

// What is not the plugin's fault counts neither for it nor against it.
func TestBreakerCountsOnlyThePluginsOwn(t *testing.T) {
	for name, call := range map[string]func(b *bench){
		"the caller went away": func(b *bench) {
			gone, leave := context.WithCancel(b.t.Context())
			leave()
			_, _ = b.call(gone, pre, failing)
		},
		"no time was left": func(b *bench) {
			out, cancel := context.WithTimeoutCause(b.t.Context(), time.Nanosecond, &plugin.TimeError{Of: "the time of all", Limit: time.Nanosecond})
			defer cancel()
			<-out.Done()
			_, _ = b.call(out, pre, failing)
		},
		"it is away": func(b *bench) {
			_, _ = b.call(b.t.Context(), pre, func(context.Context, plugin.Event, *plugin.Adjustment) error {
				return fmt.Errorf("server: %w", plugin.ErrAway)
			})
		},
		"others left it too little": func(b *bench) {
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Millisecond)
			defer cancel()
			_, _ = b.call(ctx, pre, func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
				<-ctx.Done()
				return ctx.Err()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // by the clock of a busy machine, others may leave it enough
				b := newBench(t, plugin.Ignore)
				for range 4 {
					_, _ = b.call(t.Context(), pre, failing)
				}
				for range 10 {
					call(b)
				}
				b.want(plugin.Closed, 4, 0)
			})
		})
	}
}

// A plugin whose failures are ignored is skipped in silence; one whose failures
// are not refuses its hooks, but for those that cannot refuse.
func TestOpenBreaker(t *testing.T) {
	for _, policy := range []plugin.FailurePolicy{plugin.Ignore, plugin.Fail} {
		b := newBench(t, policy)
		for range 5 {
			_, _ = b.call(t.Context(), pre, failing)
		}
		opened := strings.Count(b.log.String(), "circuit breaker opened")
		logged := b.log.Len()
		for _, hook := range []abi.Hook{pre, stopped} {
			asked, err := b.call(t.Context(), hook, serving)
			if asked || (err != nil) != (policy == plugin.Fail && hook == pre) {
				t.Errorf("%v, %v: asked %v, error %v", policy, hook, asked, err)
			}
			if err != nil {
				const want = "plugin 10-a: PreCreateContainer: not called until 2026-01-01T00:00:01Z: its breaker is open after 5 faults in a row, the last: out of cheese"
				if err.Error() != want {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
		}
		if opened != 1 || b.log.Len() != logged {
			t.Errorf("%v: logged %d openings, and %q for calls", policy, opened, b.log.String()[logged:])
		}
		if last := b.seen[len(b.seen)-1]; last.Outcome != observe.NotCalled || !errors.As(last.Err, new(*plugin.OpenError)) {
			t.Errorf("%v: the observer was told of %v", policy, last.Err)
		}
	}
}

// The breaker tries the plugin again after 1 s, 2 s, 4 s and so on up to 5 min.
func TestBreakerBacksOff(t *testing.T) {
	b := newBench(t, plugin.Fail)
	for range 5 {
		_, _ = b.call(t.Context(), pre, failing)
	}
	faults := 5
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		wait *= time.Second
		b.want(plugin.Open, faults, wait)
		b.now = b.now.Add(wait - 1)
		if asked, _ := b.call(t.Context(), pre, serving); asked {
			t.Errorf("asked before %v had passed", wait)
		}
		b.now = b.now.Add(1)
		if asked, err := b.call(t.Context(), pre, failing); !asked || !errors.Is(err, errFault) {
			t.Errorf("after %v: asked %v, error %v", wait, asked, err)
		}
		faults++
	}
	b.now = b.now.Add(time.Hour)
	if asked, err := b.call(t.Context(), pre, serving); !asked || err != nil {
		t.Errorf("asked %v, error %v", asked, err)
	}
	b.want(plugin.Closed, 0, 0)
	if !strings.Contains(b.log.String(), `msg="circuit breaker closed" plugin=10-a faults=16`) {
		t.Errorf("no word of the plugin's recovery: %s", b.log.String())
	}
	for range 5 {
		_, _ = b.call(t.Context(), pre, failing)
	}
	b.want(plugin.Open, 5, time.Second) // the back-off begins anew
}

// While one call tries, no other asks; a try that the caller gave up is no answer.
func TestHalfOpenBreaker(t *testing.T) {
	b := newBench(t, plugin.Fail)
	for range 5 {
		_, _ = b.call(t.Context(), pre, failing)
	}
	b.now = b.now.Add(time.Second)
	gone, leave := context.WithCancel(t.Context())
	asked, _ := b.call(gone, pre, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		if s := b.breaker.Status().State; s != plugin.HalfOpen || s.String() != "half-open" {
			t.Errorf("during the try the breaker is %v", s)
		}
		_, err := b.chain.Dispatch(t.Context(), nil, &subject{hook: pre})
		if !errors.As(err, new(*plugin.OpenError)) {
			t.Errorf("another call during the try: %v", err)
		}
		leave()
		return errFault
	})
	if s := b.breaker.Status(); !asked || s.State != plugin.Open || s.Faults != 5 {
		t.Errorf("asked %v; after a try that was given up the breaker is %+v", asked, s)
	}
	if asked, err := b.call(t.Context(), pre, rejecting); !asked || err == nil {
		t.Errorf("the next try: asked %v, error %v", asked, err)
	}
	b.want(plugin.Closed, 0, 0)
}

// An answer that comes after the breaker has opened is no news.
func TestLateAnswers(t *testing.T) {
	for name, late := range map[string]function{"fault": failing, "success": serving} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, plugin.Ignore)
			_, _ = b.call(t.Context(), pre, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
				for range 5 {
					_, _ = b.call(ctx, pre, failing)
				}
				return late(ctx, ev, adj)
			})
			b.want(plugin.Open, 5, time.Second)
		})
	}
}

// A plugin that meets another one's field is well for all that the breaker knows.
func TestConflictsDoNotOpenTheBreaker(t *testing.T) {
	second := member("20-b", plugin.Ignore, set(abi.CPUShares, 200))
	second.Breaker = plugin.NewBreaker(observe.Discard(), "20-b", nil)
	for range 10 {
		if _, owned, _, err := dispatch(t, member("10-a", plugin.Ignore, set(abi.CPUShares, 100)), second); err != nil || len(owned) != 1 {
			t.Fatalf("owned %v, error %v", owned, err)
		}
	}
	if s := second.Breaker.Status(); s.State != plugin.Closed || s.Faults != 0 {
		t.Errorf("the breaker is %+v", s)
	}
}

// A conflict that a plugin has met does not excuse that it reaches its limit afterwards, in each call.
func TestLimitAfterAConflictOpensTheBreaker(t *testing.T) {
	conflicting := set(abi.CPUShares, 200)
	second := member("20-b", plugin.Ignore, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if err := conflicting(ctx, ev, adj); !errors.Is(err, abi.Conflict) {
			t.Errorf("it was answered %v", err)
		}
		return &plugin.ClassError{Class: observe.ClassFuel, Err: errors.New("used all its fuel")}
	})
	second.Breaker = plugin.NewBreaker(observe.Discard(), "20-b", nil)
	for range 5 {
		dispatch(t, member("10-a", plugin.Ignore, set(abi.CPUShares, 100)), second)
	}
	if s := second.Breaker.Status(); s.State != plugin.Open {
		t.Errorf("the breaker is %+v", s)
	}
}

// TestBreakerReset: the next call asks, and a fault from before counts for nothing.
func TestBreakerReset(t *testing.T) {
	var fail error = errors.New("broken")
	var asked int
	m := member("10-a", plugin.Ignore, func(context.Context, plugin.Event, *plugin.Adjustment) error { asked++; return fail })
	m.Breaker = plugin.NewBreaker(observe.Discard(), "10-a", nil)
	for range 7 {
		dispatch(t, m)
	}
	if asked != 5 || m.Breaker.Status().State != plugin.Open {
		t.Fatalf("asked %d times, breaker %v", asked, m.Breaker.Status())
	}
	m.Breaker.Reset(t.Context())
	for range 4 {
		dispatch(t, m)
	}
	if asked != 9 || m.Breaker.Status().State != plugin.Closed {
		t.Errorf("asked %d times, breaker %v", asked, m.Breaker.Status())
	}
}
