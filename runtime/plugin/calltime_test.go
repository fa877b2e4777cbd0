package plugin_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// What plugins run counts for all of a call, and what they wait for others does not.
func TestCallTime(t *testing.T) {
	run := func(d time.Duration) func(context.Context) {
		return func(context.Context) { time.Sleep(d) }
	}
	wait := func(d time.Duration) func(context.Context) {
		return func(ctx context.Context) {
			calls := plugin.CallTimeOf(ctx)
			defer calls.Waited(calls.Wait())
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
	waitTwice := func(d time.Duration) func(context.Context) { // for an instance, and within that for a turn
		return func(ctx context.Context) {
			calls := plugin.CallTimeOf(ctx)
			defer calls.Waited(calls.Wait())
			wait(d)(ctx)
		}
	}
	both := func(first, then func(context.Context)) func(context.Context) {
		return func(ctx context.Context) { first(ctx); then(ctx) }
	}
	for _, tt := range []struct {
		name string
		does []func(context.Context) // member by member
		want string                  // of the last member; "" if it is asked
	}{
		{"runs within it", []func(context.Context){run(400 * time.Millisecond), run(400 * time.Millisecond), run(0)}, ""},
		{"runs beyond it", []func(context.Context){run(600 * time.Millisecond), run(600 * time.Millisecond), run(0)}, "not asked: the time of all plugins of a call, 1s, is used up"},
		{"waits", []func(context.Context){wait(2 * time.Second), wait(2 * time.Second), run(0)}, ""},
		{"waits within a wait", []func(context.Context){both(waitTwice(550*time.Millisecond), run(600*time.Millisecond)), run(600 * time.Millisecond), run(0)}, "not asked: the time of all plugins of a call, 1s, is used up"},
		{"waits too long", []func(context.Context){wait(4 * time.Second), wait(4 * time.Second), run(0)}, "not asked: the time of all plugins of a call and of waiting, 6s, is used up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := plugin.WithCallTime(t.Context(), time.Second)
				defer cancel()
				var last error
				var members []plugin.Member
				for _, does := range tt.does {
					p := function(func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error { does(ctx); return nil })
					members = append(members, plugin.Member{ID: "p", Plugin: p, Metered: true, Hooks: abi.HookSetOf(abi.PreCreateContainer)})
				}
				observe := func(o plugin.Outcome) { last = o.Err }
				if _, err := plugin.NewChain(slog.New(slog.DiscardHandler), nil, observe, members...).Dispatch(ctx, &subject{hook: abi.PreCreateContainer}); err != nil {
					t.Fatal(err)
				}
				if (tt.want == "") != (last == nil) || last != nil && !strings.Contains(last.Error(), tt.want) {
					t.Errorf("the last plugin: %v, want %q", last, tt.want)
				}
			})
		})
	}
}

// The context ends like one that the standard library makes, whether or not anybody waited
// for its end before.
func TestCallContext(t *testing.T) {
	type key struct{}
	for _, waits := range []bool{false, true} {
		for name, ends := range map[string]struct {
			by    func(caller, own context.CancelFunc)
			after time.Duration
			err   error
			cause string
		}{
			"by itself":     {func(_, _ context.CancelFunc) { time.Sleep(time.Minute) }, 6 * time.Second, context.DeadlineExceeded, "the time of all plugins of a call and of waiting, 6s, is used up"},
			"by the caller": {func(caller, _ context.CancelFunc) { caller() }, 0, context.Canceled, "context canceled"},
			"by its cancel": {func(_, own context.CancelFunc) { own() }, 0, context.Canceled, "context canceled"},
		} {
			synctest.Test(t, func(t *testing.T) {
				parent, caller := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
				defer caller()
				start := time.Now()
				ctx, own := plugin.WithCallTime(parent, time.Second)
				defer own()
				var ended time.Duration
				if waits {
					context.AfterFunc(ctx, func() { ended = time.Since(start) })
				}
				if end, ok := ctx.Deadline(); ctx.Err() != nil || !ok || end.Sub(start) != 6*time.Second {
					t.Errorf("%s: begins with %v, until %v", name, ctx.Err(), end.Sub(start))
				}
				ends.by(caller, own)
				synctest.Wait()
				<-ctx.Done()
				if ctx.Err() != ends.err || context.Cause(ctx).Error() != ends.cause || waits && ended != ends.after {
					t.Errorf("%s: %v after %v, because %v", name, ctx.Err(), ended, context.Cause(ctx))
				}
				if ctx.Value(key{}) != "value" || plugin.CallTimeOf(ctx) == nil {
					t.Errorf("%s: has lost its values", name)
				}
			})
		}
	}
}
