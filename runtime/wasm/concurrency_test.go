package wasm

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// within calls f as a chain calls a plugin, within the time that all plugins of a call have.
func within(t testing.TB, limit time.Duration, f func(context.Context, *plugin.Budget, plugin.Event, *plugin.Adjustment) error) {
	t.Helper()
	called := false
	p := function{call: func(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
		called = true
		return f(ctx, budget, ev, adj)
	}}
	chain := plugin.NewChain(observe.Discard(), 2,
		plugin.Member{ID: "10-p", Plugin: p, Metered: true, Policy: plugin.Fail, Hooks: abi.HookSetOf(abi.PreCreateContainer), Capabilities: abi.AllCapabilities})
	if _, err := chain.Dispatch(t.Context(), plugin.NewBudget(limit), newEvent()); err != nil || !called {
		t.Errorf("called %v: %v", called, err)
	}
}

// function is a plugin that is one Go function.
type function struct {
	plugin.Plugin
	call func(context.Context, *plugin.Budget, plugin.Event, *plugin.Adjustment) error
}

func (f function) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	return f.call(ctx, budget, ev, adj)
}

// TestCloseDoesNotWaitForGuests closes a plugin that has a new instance made, which waits for the guest of another: who closes
// it is the last call of a plugin that was replaced, or what takes all plugins out of the way.
func TestCloseDoesNotWaitForGuests(t *testing.T) {
	e := newEngine(t, Options{Running: 1})
	looping := load(t, e, "fickle", PluginOptions{})
	var missing atomic.Int64
	p, err := e.Load(t.Context(), "p", wat(t, "noop"), PluginOptions{Instances: 1, Observer: observe.Func(func(_ context.Context, e observe.Event) {
		if _, is := e.(*observe.InstanceMissing); is {
			missing.Add(1)
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ev, ended := signalling{asking("loop"), make(chan struct{})}, make(chan struct{})
	go func() { callPlugin(ctx, looping, ev); close(ended) }()
	<-ev.reading
	g, err := p.(*guests).get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	g.broken = true // as a stack overflow leaves it
	p.(*guests).recycle(g)
	if err := p.Close(t.Context()); err != nil || missing.Load() > 0 {
		t.Errorf("closing the plugin waited for an instance in vain: %v", err)
	}
	cancel()
	<-ended
}

// TestWaitingCountsOnce lets a call wait for a turn in which it can make an instance: that is
// a wait for a turn within a wait for an instance. Counted twice, it would give the plugins of
// the call more time than they have.
func TestWaitingCountsOnce(t *testing.T) {
	e := newEngine(t, Options{Running: 1})
	looping, other := load(t, e, "fickle", PluginOptions{}), load(t, e, "quota", PluginOptions{Instances: 2})
	instances := other.(*guests).pool
	for g, ok := instances.TryGet(); ok; g, ok = instances.TryGet() {
		defer instances.Discard(g)
		break // of two; the other is made anew
	}
	if g, ok := instances.TryGet(); ok {
		instances.Discard(g)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ev, ended := signalling{asking("loop"), make(chan struct{})}, make(chan struct{})
	go func() { callPlugin(ctx, looping, ev); close(ended) }()
	<-ev.reading
	time.AfterFunc(300*time.Millisecond, cancel)

	within(t, time.Minute, func(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
		err := other.Call(ctx, budget, ev, adj)
		if runs := time.Since(budget.Running()); runs < 0 {
			t.Errorf("the plugin has run for %v", runs)
		}
		return err
	})
	<-ended
}
