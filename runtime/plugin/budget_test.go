package plugin_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// What plugins run counts for all of a call, and what they wait for others does not.
func TestBudget(t *testing.T) {
	type does = func(context.Context, *plugin.Budget)
	run := func(d time.Duration) does {
		return func(context.Context, *plugin.Budget) { time.Sleep(d) }
	}
	wait := func(d time.Duration) does {
		return func(ctx context.Context, b *plugin.Budget) {
			defer b.Wait()()
			ctx, cancel := b.WaitContext(ctx)
			defer cancel()
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
	waitTwice := func(d time.Duration) does { // for an instance, and within that for a turn
		return func(ctx context.Context, b *plugin.Budget) {
			defer b.Wait()()
			wait(d)(ctx, b)
		}
	}
	both := func(first, then does) does {
		return func(ctx context.Context, b *plugin.Budget) { first(ctx, b); then(ctx, b) }
	}
	for _, tt := range []struct {
		name string
		does []does // member by member
		want string // of the last member; "" if it is asked
	}{
		{"runs within it", []does{run(400 * time.Millisecond), run(400 * time.Millisecond), run(0)}, ""},
		{"runs beyond it", []does{run(600 * time.Millisecond), run(600 * time.Millisecond), run(0)}, "not called: the time of all plugins of a call, 1s, is used up"},
		{"waits", []does{wait(2 * time.Second), wait(2 * time.Second), run(0)}, ""},
		{"waits within a wait", []does{both(waitTwice(550*time.Millisecond), run(600*time.Millisecond)), run(600 * time.Millisecond), run(0)}, "not called: the time of all plugins of a call, 1s, is used up"},
		{"waits too long", []does{wait(4 * time.Second), wait(4 * time.Second), run(0)}, "not called: the time of all plugins of a call and of waiting, 6s, is used up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last error
				var members []plugin.Member
				for _, does := range tt.does {
					p := budgeted(func(ctx context.Context, b *plugin.Budget) error { does(ctx, b); return nil })
					members = append(members, plugin.Member{ID: "p", Plugin: p, Metered: true, Hooks: abi.HookSetOf(abi.PreCreateContainer)})
				}
				heard := onCall(func(c *observe.HookCalled) { last = c.Err })
				if _, err := plugin.NewChain(heard, 0, members...).Dispatch(t.Context(), plugin.NewBudget(time.Second), &subject{hook: abi.PreCreateContainer}); err != nil {
					t.Fatal(err)
				}
				if (tt.want == "") != (last == nil) || last != nil && !strings.Contains(last.Error(), tt.want) {
					t.Errorf("the last plugin: %v, want %q", last, tt.want)
				}
			})
		})
	}
}

// What the host does between two plugins, such as to log the first, is in no plugin's time.
func TestTimeBetweenPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		slow := onCall(func(c *observe.HookCalled) { errs = append(errs, c.Err); time.Sleep(700 * time.Millisecond) })
		p := budgeted(func(context.Context, *plugin.Budget) error { time.Sleep(100 * time.Millisecond); return nil })
		member := plugin.Member{ID: "p", Plugin: p, Metered: true, Hooks: abi.HookSetOf(abi.PreCreateContainer)}
		chain, budget := plugin.NewChain(slow, 0, member, member, member, member), plugin.NewBudget(time.Second)
		if spent := budget.Spent(); spent != 0 {
			t.Errorf("%v are spent before the first plugin", spent)
		}
		if _, err := chain.Dispatch(t.Context(), budget, &subject{hook: abi.PreCreateContainer}); err != nil {
			t.Fatal(err)
		}
		if len(errs) != 4 || errs[3] != nil {
			t.Errorf("the plugins' errors: %v", errs)
		}
		if spent := budget.Spent(); spent != 400*time.Millisecond {
			t.Errorf("plugins took %v, want 400ms", spent)
		}
	})
}

// A plugin that looks at the budget by itself gets the caller's context; another one gets a
// context that ends with what is left of the budget, or with its own time.
func TestContextOfACall(t *testing.T) {
	for _, tt := range []struct {
		metered bool
		timeout time.Duration
		want    time.Duration // of the second plugin, after the first ran for 300 ms; 0: no deadline
		cause   string
	}{
		{true, 0, 0, ""},
		{false, 0, 700 * time.Millisecond, "the time of all plugins of a call, 1s, is used up"},
		{false, 500 * time.Millisecond, 500 * time.Millisecond, "its time for one call, 500ms, is used up"},
		{false, 800 * time.Millisecond, 700 * time.Millisecond, "the time of all plugins of a call, 1s, is used up"},
	} {
		synctest.Test(t, func(t *testing.T) {
			first := budgeted(func(_ context.Context, b *plugin.Budget) error {
				waited := b.Wait()
				time.Sleep(time.Second)
				waited()
				time.Sleep(300 * time.Millisecond)
				return nil
			})
			second := budgeted(func(ctx context.Context, _ *plugin.Budget) error {
				end, ok := ctx.Deadline()
				if ok != (tt.want != 0) || ok && time.Until(end) != tt.want {
					t.Errorf("%+v: ends in %v (%v)", tt, time.Until(end), ok)
				}
				if ok {
					<-ctx.Done()
					if cause := context.Cause(ctx); cause.Error() != tt.cause {
						t.Errorf("%+v: ends because %v", tt, cause)
					}
				}
				return nil
			})
			hooks := abi.HookSetOf(abi.PreCreateContainer)
			chain := plugin.NewChain(observe.Discard(), 0, plugin.Member{ID: "a", Plugin: first, Metered: true, Hooks: hooks},
				plugin.Member{ID: "b", Plugin: second, Metered: tt.metered, Timeout: tt.timeout, Hooks: hooks})
			if _, err := chain.Dispatch(t.Context(), plugin.NewBudget(time.Second), &subject{hook: abi.PreCreateContainer}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The context of a wait ends when the plugins have waited too long, or with the caller's.
func TestContextOfAWait(t *testing.T) {
	for _, goesAway := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			caller, goAway := context.WithCancel(t.Context())
			defer goAway()
			start := time.Now()
			ctx, cancel := plugin.NewBudget(time.Second).WaitContext(caller)
			defer cancel()
			want, cause := 6*time.Second, "the time of all plugins of a call and of waiting, 6s, is used up"
			if goesAway {
				want, cause = 0, "context canceled"
				goAway()
			}
			<-ctx.Done()
			if took := time.Since(start); took != want || context.Cause(ctx).Error() != cause {
				t.Errorf("ended after %v because %v", took, context.Cause(ctx))
			}
		})
	}
}

// A wait in a queue ends while the plugins have time left to run.
func TestAQueueLeavesTimeToRun(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		ran, deadline, want time.Duration
		cause               string
	}{
		{0, 0, 5 * second, "the time of all plugins of a call for waiting, 5s, is used up"},
		{400 * ms, 0, 5 * second, "the time of all plugins of a call for waiting, 5s, is used up"},
		{0, 20 * second, 5 * second, "the time of all plugins of a call for waiting, 5s, is used up"},
		{0, 3 * second, 2 * second, "what the caller's deadline leaves for waiting, 2s, is used up"},
		{0, 500 * ms, 250 * ms, "what the caller's deadline leaves for waiting, 250ms, is used up"},
		{400 * ms, 2 * second, 1 * second, "what the caller's deadline leaves for waiting, 1s, is used up"},
	} {
		synctest.Test(t, func(t *testing.T) {
			caller, goAway := context.WithCancel(t.Context())
			if tt.deadline > 0 {
				caller, goAway = context.WithTimeout(t.Context(), tt.deadline)
			}
			defer goAway()
			b := plugin.NewBudget(second)
			time.Sleep(tt.ran)
			start, waited := time.Now(), b.Wait()
			ctx, cancel := b.QueueContext(caller)
			defer cancel()
			<-ctx.Done()
			if took, cause := time.Since(start), context.Cause(ctx); took != tt.want || cause.Error() != tt.cause {
				t.Errorf("%+v: ended after %v because %v", tt, took, cause)
			}
			waited()
			if left := time.Until(b.End()); left != second-tt.ran {
				t.Errorf("%+v: %v are left to run", tt, left)
			}
		})
	}
}

// A call without a budget is bounded by nothing but its context.
func TestNoBudget(t *testing.T) {
	var b *plugin.Budget
	b.Wait()()
	if ctx, cancel := b.WaitContext(t.Context()); b.Err() != nil || !b.End().IsZero() || ctx != t.Context() {
		t.Errorf("it ends at %v, with %v", b.End(), b.Err())
	} else {
		cancel()
	}
	if ctx, cancel := b.QueueContext(t.Context()); ctx != t.Context() {
		t.Error("a queue has an end")
	} else {
		cancel()
	}
}
