package intercept_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func withCallTime(d time.Duration) option { return func(o *intercept.Options) { o.CallTime = d } }

// All plugins of a call share one budget: the call's time, and never more than
// half of what the caller has left, because the other half is the runtime's.
func TestPluginsShareTheTimeOfACall(t *testing.T) {
	for _, tt := range []struct{ caller, call, want time.Duration }{
		{0, intercept.DefaultCallTime, intercept.DefaultCallTime},
		{0, time.Minute, time.Minute},
		{time.Hour, time.Minute, time.Minute},
		{time.Hour + 100*time.Millisecond, 2 * time.Hour, time.Hour / 2},
		{2*time.Minute + 100*time.Millisecond, intercept.DefaultCallTime, intercept.DefaultCallTime},
	} {
		start := time.Now()
		ctx := t.Context()
		if tt.caller > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, tt.caller)
			defer cancel()
		}
		var ends []time.Time
		note := func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
			end, _ := ctx.Deadline()
			ends = append(ends, end)
			return nil
		}
		n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, note), on(abi.PreRunPodSandbox, note)}, withCallTime(tt.call))
		_, err := n.call(ctx, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
		n.must(err)
		if len(ends) != 2 {
			t.Fatalf("the plugins' time ends at %v", ends)
		}
		took := time.Since(start)
		for _, end := range ends {
			if got := end.Sub(start); got < tt.want-took || got > tt.want+took {
				t.Errorf("caller %v, call %v: a plugin has %v, want %v", tt.caller, tt.call, got, tt.want)
			}
		}
	}
}

// A plugin that finds no time left, or uses it up, is an error that says whose
// time it was and how much.
func TestTimeOfACallIsUsedUp(t *testing.T) {
	sleep := func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error { <-ctx.Done(); return ctx.Err() }
	for _, tt := range []struct {
		caller, call time.Duration
		members      []plugin.Member
		want         []string
	}{
		{0, 50 * time.Millisecond, []plugin.Member{must("10-slow", sleep)}, []string{"10-slow", "the time of all plugins of a call, 50ms, is used up; it ran "}},
		{0, 50 * time.Millisecond, []plugin.Member{on(abi.PreRunPodSandbox, sleep), must("20-late", nothing)}, []string{"20-late", "not called: the time of all plugins of a call, 50ms, is used up"}},
		{500 * time.Millisecond, time.Second, []plugin.Member{must("10-slow", sleep)}, []string{"10-slow", "what the caller's deadline leaves for hooks, ", "is used up; it ran"}},
		{50 * time.Millisecond, time.Second, []plugin.Member{must("10-slow", sleep)}, []string{"10-slow", "not called: what the caller's deadline leaves for hooks, 0s, is used up"}},
	} {
		synctest.Test(t, func(t *testing.T) { // by the clock of a busy machine, the time is over before the first one is called
			n := newNode(t, tt.members, withCallTime(tt.call))
			ctx := t.Context()
			if tt.caller > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.caller)
				defer cancel()
			}
			_, err := n.call(ctx, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, nil)
			if status.Code(err) != codes.Unavailable {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
		})
	}
}

func must(id string, f function) plugin.Member {
	m := on(abi.PreRunPodSandbox, f)
	m.ID, m.Policy = id, plugin.Fail
	return m
}
