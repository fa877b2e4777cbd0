package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// function is a plugin whose Call is a Go function.
type function func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error

func (function) Manifest() abi.Manifest      { return abi.Manifest{} }
func (function) Close(context.Context) error { return nil }
func (f function) Call(ctx context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	return f(ctx, ev, adj)
}

// budgeted is a plugin that looks at nothing but its time.
type budgeted func(context.Context, *plugin.Budget) error

func (budgeted) Manifest() abi.Manifest      { return abi.Manifest{} }
func (budgeted) Close(context.Context) error { return nil }
func (f budgeted) Call(ctx context.Context, b *plugin.Budget, _ plugin.Event, _ *plugin.Adjustment) error {
	return f(ctx, b)
}

// subject is an event that remembers what was applied to it.
type subject struct {
	plugin.Event
	hook    abi.Hook
	secrets []string
	exempt  bool
	applied []plugin.Owned
}

func (s *subject) Secrets(_ abi.CapabilitySet, from int) ([]string, int) {
	return s.secrets[from:], len(s.secrets)
}
func (s *subject) Hook() abi.Hook                                 { return s.hook }
func (s *subject) Exempt() bool                                   { return s.exempt }
func (s *subject) Apply(cs []plugin.Owned)                        { s.applied = append(s.applied, cs...) }
func (s *subject) Int64(abi.Object, abi.Field) (int64, abi.Errno) { return 0, abi.NotFound }
func (s *subject) Text(abi.Object, abi.Field) (string, abi.Errno) { return "", abi.NotFound }
func (s *subject) Lookup(abi.Object, abi.Field, string) (string, abi.Errno) {
	return "", abi.NotFound
}
func (s *subject) About() observe.Object {
	return observe.Object{Namespace: "ns", Pod: "web", Container: "app"}
}

// onCall is an observer of calls of plugins.
func onCall(f func(*observe.HookCalled)) observe.Observer {
	return observe.Func(func(_ context.Context, e observe.Event) {
		if called, ok := e.(*observe.HookCalled); ok {
			f(called)
		}
	})
}

func set(f abi.Field, v int64) function {
	return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+f, v)
	}
}

func member(id string, policy plugin.FailurePolicy, f function) plugin.Member {
	return plugin.Member{
		ID: id, Plugin: f, Policy: policy, Timeout: time.Second,
		Hooks:        abi.HookSetOf(abi.PreCreateContainer, abi.PostStopContainer),
		Capabilities: abi.AllCapabilities,
	}
}

// dispatch runs a PreCreateContainer through the members.
func dispatch(t *testing.T, members ...plugin.Member) (*subject, []plugin.Owned, string, error) {
	t.Helper()
	var log bytes.Buffer
	s := &subject{hook: abi.PreCreateContainer}
	logger := slogsink.New(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	owned, err := plugin.NewChain(logger, 2, members...).Dispatch(t.Context(), nil, s)
	return s, owned, log.String(), err
}

func TestChainAppliesInOrder(t *testing.T) {
	s, owned, _, err := dispatch(t,
		member("10-a", plugin.Ignore, set(abi.CPUShares, 100)),
		member("20-b", plugin.Ignore, set(abi.CPUQuota, 5000)))
	if err != nil || len(s.applied) != 2 || owned[0].Plugin != "10-a" || owned[1].Change.Int != 5000 {
		t.Errorf("applied %v, owned %v, error %v", s.applied, owned, err)
	}
}

func TestConflict(t *testing.T) {
	unified := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "memory.high", "1000")
	}
	file := func(v string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.WriteFile(abi.Container, "memory.high", v)
		}
	}
	weight := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "cpu.weight", "39")
	}
	cpuMax := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "cpu.max", "1000 1000")
	}
	number := func(f abi.Field) func(int64) function {
		return func(id int64) function {
			return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
				return adj.SetInt64(abi.Container, f, id)
			}
		}
	}
	user, group := number(abi.ContainerRunAsUser), number(abi.ContainerRunAsGroup)
	username := func(name string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetText(abi.Container, abi.ContainerRunAsUsername, name)
		}
	}
	tests := []struct {
		name          string
		first, second function
		conflict      bool
	}{
		{"same field, other value", set(abi.CPUShares, 100), set(abi.CPUShares, 200), true},
		{"same field, same value", set(abi.CPUShares, 100), set(abi.CPUShares, 100), false},
		{"other field", set(abi.CPUShares, 100), set(abi.CPUQuota, 2000), false},
		{"unified and file, other value", unified, file("2000"), true},
		{"unified and file, same value", unified, file("1000"), false},
		{"files, same value written otherwise", file("1000"), file(" 1000"), false},
		{"field and its unified key", set(abi.CPUShares, 1024), weight, true},
		{"period and cpu.max", set(abi.CPUPeriod, 50_000), cpuMax, true},
		{"a user's number and a name", user(1000), username("app"), true},
		{"a user's name and a number", username("app"), user(1000), true},
		{"users of the same name", username("app"), username("app"), false},
		{"a user's number and the group of that number", user(1000), group(1000), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, owned, log, err := dispatch(t, member("10-first", plugin.Ignore, tt.first), member("20-second", plugin.Ignore, tt.second))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(owned) == 1; got != tt.conflict || len(s.applied) != len(owned) {
				t.Errorf("conflict %v, want %v; changes %v", got, tt.conflict, owned)
			}
			named := strings.Contains(log, `"plugins conflict"`) && strings.Contains(log, "10-first") && strings.Contains(log, "20-second")
			if named != tt.conflict {
				t.Errorf("log names the conflict: %v\n%s", named, log)
			}
			_, _, _, err = dispatch(t, member("10-first", plugin.Fail, tt.first), member("20-second", plugin.Fail, tt.second))
			if (err != nil) != tt.conflict {
				t.Fatalf("under Fail: %v", err)
			}
			if err != nil && (!errors.Is(err, abi.Conflict) || !strings.Contains(err.Error(), "20-second") || !strings.Contains(err.Error(), "10-first")) {
				t.Errorf("error does not name both plugins: %v", err)
			}
		})
	}
}

// The whole adjustment of a plugin that fails is dropped, whatever it had set before.
func TestFailureDropsTheAdjustment(t *testing.T) {
	half := func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 100); err != nil {
			return err
		}
		return errors.New("broke after its first write")
	}
	s, owned, _, err := dispatch(t, member("10-half", plugin.Ignore, half), member("20-other", plugin.Ignore, set(abi.CPUShares, 200)))
	if err != nil || len(owned) != 1 || s.applied[0].Change.Int != 200 {
		t.Errorf("applied %v, error %v", s.applied, err)
	}
	_, _, _, err = dispatch(t, member("10-half", plugin.Fail, half))
	var failed *plugin.Error
	if !errors.As(err, &failed) || failed.Plugin != "10-half" || failed.Hook != abi.PreCreateContainer {
		t.Errorf("under Fail: %v", err)
	}
}

func TestHandledConflictIsNoFailure(t *testing.T) {
	polite := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 200); !errors.Is(err, abi.Conflict) {
			return fmt.Errorf("expected a conflict, got %v", err)
		}
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 2000)
	}
	_, owned, _, err := dispatch(t, member("10-a", plugin.Ignore, set(abi.CPUShares, 100)), member("20-polite", plugin.Fail, polite))
	if err != nil || len(owned) != 2 {
		t.Errorf("changes %v, error %v", owned, err)
	}
}

// A guest that fails over a conflict says so in words of its own: the error
// still names the field and the plugin that was first.
func TestConflictOfAGuestIsNamed(t *testing.T) {
	guest := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		_ = adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 200)
		return errors.New("failed: SetCPUShares: conflict")
	}
	_, _, _, err := dispatch(t, member("10-first", plugin.Ignore, set(abi.CPUShares, 100)), member("20-guest", plugin.Fail, guest))
	var conflict *plugin.ConflictError
	if !errors.As(err, &conflict) || conflict.First != "10-first" || !strings.Contains(err.Error(), "cpu_shares") || !strings.Contains(err.Error(), "SetCPUShares") {
		t.Errorf("error %v", err)
	}
}

// kubelet is told that a plugin panicked; where is for the log.
func TestPanicIsToldWithoutItsStack(t *testing.T) {
	_, _, log, err := dispatch(t, member("10-bad", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { panic("oh") }))
	if err == nil || !strings.Contains(err.Error(), "panic: oh") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(log, "goroutine") {
		t.Errorf("the log does not say where:\n%s", log)
	}
}

func TestRejectIsHonouredUnderIgnore(t *testing.T) {
	deny := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.Reject(abi.RejectPermissionDenied, "not on this\nnode")
	}
	_, _, _, err := dispatch(t, member("10-deny", plugin.Ignore, deny))
	var refused *plugin.Rejection
	if !errors.As(err, &refused) || refused.Code != abi.RejectPermissionDenied || refused.Reason != "not on this node" {
		t.Errorf("error %v", err)
	}
	adj := plugin.NewAdjustment(abi.PostStopContainer, 2)
	if err := adj.Reject(0, "never"); !errors.Is(err, abi.Invalid) || adj.Rejection() != nil {
		t.Errorf("a post hook refused a call: %v", err)
	}
}

func TestFaults(t *testing.T) {
	faults := map[string]function{
		"panic": func(context.Context, plugin.Event, *plugin.Adjustment) error { panic("oh") },
		"slow": func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"error": func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broken") },
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			m := member("10-bad", plugin.Ignore, f)
			m.Timeout = 20 * time.Millisecond
			if _, owned, _, err := dispatch(t, m, member("20-good", plugin.Ignore, set(abi.CPUShares, 5))); err != nil || len(owned) != 1 {
				t.Errorf("under Ignore: changes %v, error %v", owned, err)
			}
			m.Policy = plugin.Fail
			if _, _, _, err := dispatch(t, m); err == nil {
				t.Error("under Fail the call went on")
			}
		})
	}
}

// Stop and Remove cannot be refused: a pod must be killable.
func TestPostHooksNeverFail(t *testing.T) {
	for _, fault := range []error{errors.New("broken"), &plugin.Rejection{Code: abi.RejectPermissionDenied}} {
		asked := 0
		bad := member("10-bad", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { asked++; return fault })
		s := &subject{hook: abi.PostStopContainer}
		if _, err := plugin.NewChain(observe.Discard(), 0, bad, bad).Dispatch(t.Context(), nil, s); err != nil || asked != 2 {
			t.Errorf("%v: error %v, %d plugins asked", fault, err, asked)
		}
	}
}

// A caller that went away is nobody's failure: nothing is counted as ignored.
func TestCancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var outcomes int
	m := member("10-a", plugin.Ignore, func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
		cancel()
		return ctx.Err()
	})
	chain := plugin.NewChain(onCall(func(*observe.HookCalled) { outcomes++ }), 0, m, m)
	if _, err := chain.Dispatch(ctx, nil, &subject{hook: abi.PreCreateContainer}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if outcomes != 1 {
		t.Errorf("%d plugins were asked", outcomes)
	}
}

// callers is a context with an end of its own, like a merged one: what is made of it hears
// of that a moment later than who asks it.
type callers struct {
	context.Context
	done chan struct{}
	err  atomic.Pointer[error]
}

func (c *callers) Done() <-chan struct{} { return c.done }

func (c *callers) Err() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *callers) leave() {
	c.err.Store(&context.Canceled)
	close(c.done)
}

// A call whose caller goes away at the very moment that a plugin refuses it does not go on.
func TestCancelledCallDoesNotGoOn(t *testing.T) {
	for range 1000 {
		caller := &callers{Context: t.Context(), done: make(chan struct{})}
		m := member("10-a", plugin.Fail, func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
			ctx.Done() // which hears of the caller's end a moment later
			caller.leave()
			return &plugin.Rejection{Code: abi.RejectPermissionDenied}
		})
		_, err := plugin.NewChain(observe.Discard(), 0, m).Dispatch(caller, plugin.NewBudget(time.Minute), &subject{hook: abi.PreCreateContainer})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
}

func TestEnvironmentNeverReachesTheLog(t *testing.T) {
	secret := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.ContainerEnv, "TOKEN", "s3cret")
	}
	_, _, log, err := dispatch(t, member("10-a", plugin.Ignore, secret), member("20-b", plugin.Ignore,
		func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetEntry(abi.Container, abi.ContainerEnv, "TOKEN", "other-s3cret")
		}))
	if err != nil || strings.Contains(log, "s3cret") || !strings.Contains(log, "TOKEN") {
		t.Errorf("error %v, log:\n%s", err, log)
	}
}
