package wasm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// engines runs a test with compiled and with interpreted guests.
func engines(t *testing.T, f func(*testing.T, *Engine)) {
	for _, interpret := range []bool{false, true} {
		t.Run(map[bool]string{false: "compiler", true: "interpreter"}[interpret], func(t *testing.T) {
			f(t, newEngine(t, Options{Interpret: interpret}))
		})
	}
}

// TestMisbehaviour calls guests that misbehave in their hook, twice each: the
// second call must not meet what the first one left.
func TestMisbehaviour(t *testing.T) {
	tests := []struct{ guest, want string }{
		{"trap", "trapped: unreachable in boom"},
		{"abort", "aborted: index 7 out of range"},
		{"panic", "trapped: unreachable in wp_hook (it printed: panic: tier is missing)"},
		{"loop", "ran longer than its time limit of 50ms: "},
		{"loop", "units of fuel, its limit is 1000000"},
		{"fibonacci", "units of fuel, its limit is 1000000"},
		{"recursion", "trapped: stack overflow"}, // ours, or the interpreter's 2,000 frames
		{"exit-0", "exited with code 0"},
		{"exit-3", "exited with code 3"},
		{"alloc", "trapped: unreachable in out_of_memory, called by wp_hook; its memory has 32 MiB, its limit is 32"},
		{"nonsense", "returned 7, which has no meaning"},
		{"reject-missing", "returned 1, which is for after a call of reject"},
		{"reject-forgotten", "called reject and then returned 0 instead of 1"},
		{"fail", "failed: tier is missing"},
		{"fail-silent", "failed without a reason: it returned -4 (invalid)"},
		{"bad-pointer", "set_bytes: 4 bytes at 0x7fffffff are outside its memory of 65536 bytes"},
		{"bad-length", "log: 4294967295 bytes at 0x0 are outside its memory of 65536 bytes"},
		{"host-call-flood", "called the host more than 1000 times"},
	}
	engines(t, func(t *testing.T, e *Engine) {
		good := load(t, e, "quota", PluginOptions{})
		for _, tt := range tests {
			t.Run(tt.guest, func(t *testing.T) {
				o := PluginOptions{} // but for the guest that will use it up
				switch {
				case strings.Contains(tt.want, "time limit"):
					o.Timeout = 50 * time.Millisecond
				case strings.Contains(tt.want, "fuel"):
					o.Set.Fuel = 1_000_000
				}
				p := load(t, e, tt.guest, o)
				for range 2 {
					_, err := callPlugin(t.Context(), p, newEvent())
					wantError(t, err, tt.want)
					if strings.Contains(err.Error(), "goroutine") || strings.Contains(err.Error(), ".go:") {
						t.Errorf("error holds a stack trace: %s", err)
					}
				}
				wantQuota(t, good)
			})
		}
	})
}

func wantQuota(t *testing.T, p plugin.Plugin) {
	t.Helper()
	changes, err := callPlugin(t.Context(), p, newEvent())
	if err != nil {
		t.Fatal(err)
	}
	want := []plugin.Change{
		{Op: plugin.SetInt64, Object: abi.Container, Field: abi.Resources + abi.CPUQuota, Int: 200_000},
		{Op: plugin.SetEntry, Object: abi.Container, Field: abi.ContainerAnnotations, Key: "example.com/quota", Text: "200000"},
	}
	if !slices.Equal(changes, want) {
		t.Errorf("quota changed %+v, want %+v", changes, want)
	}
}

func TestReject(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "reject", PluginOptions{})
	_, err := callPlugin(t.Context(), p, newEvent())
	var r *plugin.Rejection
	if !errors.As(err, &r) || *r != (plugin.Rejection{Code: abi.RejectFailedPrecondition, Reason: "not on this node"}) {
		t.Errorf("got %v, want a rejection with its code and reason", err)
	}
	ev := newEvent()
	ev.hook = abi.PostStopContainer // cannot be refused
	_, err = callPlugin(t.Context(), p, ev)
	wantError(t, err, "returned 1, which is for after a call of reject")
}

// TestInstances shows with a counter in the guest that every call meets a guest
// that remembers none before it, however that ended.
func TestInstances(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "fickle", PluginOptions{Instances: 1})
		for _, step := range []struct{ do, want string }{
			{"", "1"}, {"", "1"}, {"trap", "trapped: unreachable"}, {"", "1"}, {"", "1"},
			{"exit", "exited with code 1"}, {"", "1"}, {"loop", "time limit"}, {"", "1"},
			{"fail", "failed: asked to"}, {"", "1"},
		} {
			timeout := time.Minute
			if step.do == "loop" {
				timeout = 200 * time.Millisecond
			}
			p.(*guests).hooks.usual.time = timeout // a machine that stalls has no other call cut off
			changes, err := callPlugin(t.Context(), p, asking(step.do))
			if step.do != "" {
				wantError(t, err, step.want)
			} else if err != nil || len(changes) != 1 || changes[0].Text != step.want {
				t.Errorf("got %v, %v, want the count %s", changes, err, step.want)
			}
		}
	})
}

// TestCallerLeaves shows that a guest that is cut off with its caller has not failed.
func TestCallerLeaves(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "fickle", PluginOptions{Timeout: time.Minute, Instances: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ev := signalling{asking("loop"), make(chan struct{})}
	go func() {
		<-ev.reading
		cancel()
	}()
	if _, err := callPlugin(ctx, p, ev); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := callPlugin(ctx, p, asking("")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a context that is done, want context.Canceled", err)
	}
	if changes, err := callPlugin(t.Context(), p, asking("")); err != nil || changes[0].Text != "1" {
		t.Errorf("the next caller got %v, %v", changes, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := callPlugin(ctx, p, asking("loop"))
	wantError(t, err, "ran longer than the call allows: context deadline exceeded")
}

// signalling tells when a guest has begun to read.
type signalling struct {
	*testEvent
	reading chan struct{}
}

func (e signalling) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	e.reading <- struct{}{}
	return e.testEvent.Lookup(o, f, key)
}

// TestPoolIsBounded shows that a caller waits for an instance no longer than it may.
func TestPoolIsBounded(t *testing.T) {
	p := load(t, newEngine(t, Options{Running: 3}), "fickle", PluginOptions{Timeout: time.Minute, Instances: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	for range 2 {
		ev := signalling{asking("loop"), make(chan struct{})}
		go func() {
			_, err := callPlugin(ctx, p, ev)
			ended <- err
		}()
		<-ev.reading
	}
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err := callPlugin(short, p, asking(""))
	wantError(t, err, "waiting for one of 2 instances")
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	}
	if _, err := callPlugin(t.Context(), p, asking("")); err != nil {
		t.Errorf("when the others are gone: %v", err)
	}
}

// TestChain runs two guests that want different things as one chain.
func TestChain(t *testing.T) {
	e := newEngine(t, Options{})
	first, second, third := load(t, e, "quota", PluginOptions{}), load(t, e, "conflict", PluginOptions{}), load(t, e, "patient", PluginOptions{})
	hooks := abi.HookSetOf(abi.PreCreateContainer)
	for _, policy := range []plugin.FailurePolicy{plugin.Ignore, plugin.Fail} {
		t.Run(policy.String(), func(t *testing.T) {
			var logged record
			chain := plugin.NewChain(logged.logger(), 2,
				plugin.Member{ID: "10-quota", Plugin: first, Policy: plugin.Fail, Hooks: hooks, Capabilities: abi.AllCapabilities},
				plugin.Member{ID: "20-patient", Plugin: third, Policy: policy, Hooks: hooks, Capabilities: abi.AllCapabilities},
				plugin.Member{ID: "30-conflict", Plugin: second, Policy: policy, Hooks: hooks, Capabilities: abi.AllCapabilities})
			ev := newEvent()
			_, err := chain.Dispatch(t.Context(), nil, ev)
			if policy == plugin.Fail {
				wantError(t, err, "plugin 30-conflict: PreCreateContainer: failed without a reason: it returned -8 (conflict)")
			} else if err != nil {
				t.Error(err)
			}
			if got := ev.ints[slot{abi.Container, abi.Resources + abi.CPUQuota}]; got != 200_000 {
				t.Errorf("quota is %d, want the first plugin's", got)
			}
			if got := ev.maps[slot{abi.Container, abi.ContainerAnnotations}]["example.com/patient"]; got != "yes" {
				t.Errorf("the guest that handles the conflict set %q, want yes", got)
			}
			if want := "first=10-quota"; !strings.Contains(logged.String(), want) {
				t.Errorf("log lacks %q:\n%s", want, logged.String())
			}
		})
	}
}

// TestMemoryLimit shows that a guest gets as many pages as the operator says.
func TestMemoryLimit(t *testing.T) {
	e := newEngine(t, Options{})
	for _, pages := range []uint32{1, 16, 512} {
		t.Run(fmt.Sprint(pages), func(t *testing.T) {
			p := load(t, e, "alloc", PluginOptions{Set: abi.Limits{Memory: int64(pages) << 16}}).(*guests)
			g, err := p.instantiate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			_, err = g.enter(t.Context(), g.newCall(t.Context(), "", nil, newEvent(), plugin.NewAdjustment(3, 0)), g.hook, 3)
			wantError(t, err, "out_of_memory")
			if got := g.instance.Memory().Size(); got != pages<<16 {
				t.Errorf("it got %d bytes, want %d pages", got, pages)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	e := newEngine(t, Options{})
	for _, guest := range []string{"log-flood", "print-flood"} {
		t.Run(guest, func(t *testing.T) {
			var logged record
			p := load(t, e, guest, PluginOptions{Observer: logged.logger()})
			if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
				t.Fatal(err)
			}
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(logged.String()), "\n"), func(l string) bool {
				return strings.Contains(l, `msg="plugin function called"`)
			})
			text := 0
			for _, l := range lines[:len(lines)-1] {
				if !strings.Contains(l, "msg=\"plugin log\" plugin="+guest+" hook=PreCreateContainer namespace=prod pod=web-0 text=xxx") {
					t.Fatalf("unexpected line %.200q", l)
				}
				text += strings.Count(l, "x")
			}
			if text < maxOutput/2 || text > maxOutput {
				t.Errorf("%d bytes were logged, want at most %d and not much less", text, maxOutput)
			}
			if last := lines[len(lines)-1]; !strings.Contains(last, "msg=\"plugin log cut\" plugin="+guest+" hook=PreCreateContainer namespace=prod pod=web-0 dropped_bytes=") {
				t.Errorf("last line is %.200q, want the count of what was dropped", last)
			}
		})
	}
}

// Of a small guest three calls in a row meet a clean instance each, of which none is reset
// before the third has been served; then all are.
func TestSpareInstances(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "fickle", PluginOptions{}).(*guests)
	for n := range 9 {
		if n%maxSpares == 0 {
			p.resets.Wait()
		}
		g, ok := p.pool.TryGet()
		if !ok || g.dirty {
			t.Fatalf("call %d would meet no clean instance", n)
		}
		p.pool.Put(g)
		if changes, err := callPlugin(t.Context(), p, asking("")); err != nil || changes[0].Text != "1" {
			t.Errorf("call %d: got %v, %v", n, changes, err)
		}
		if n%maxSpares < maxSpares-1 && !g.dirty {
			t.Errorf("call %d has reset its instance", n)
		}
	}
}
