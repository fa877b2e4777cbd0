package wasm

import (
	"context"
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

	within(t, time.Second, func(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
		err := other.Call(ctx, budget, ev, adj)
		if runs := time.Since(budget.Running()); runs < 0 {
			t.Errorf("the plugin has run for %v", runs)
		}
		return err
	})
	<-ended
}
