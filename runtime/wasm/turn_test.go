package wasm

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// looking is a plugin whose calls are looked at when they have ended.
type looking struct {
	plugin.Plugin
	after func(context.Context)
}

func (l looking) Call(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	err := l.Plugin.Call(ctx, ev, adj)
	l.after(ctx)
	return err
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

	seen := false
	p := looking{other, func(ctx context.Context) {
		seen = true
		if runs := time.Since(plugin.CallTimeOf(ctx).Runs()); runs < 0 {
			t.Errorf("the plugin has run for %v", runs)
		}
	}}
	chain := plugin.NewChain(slog.New(slog.DiscardHandler), v2{}, nil,
		plugin.Member{ID: "10-quota", Plugin: p, Metered: true, Policy: plugin.Fail, Hooks: abi.HookSetOf(abi.PreCreateContainer), Capabilities: abi.AllCapabilities})
	limited, end := plugin.WithCallTime(t.Context(), time.Second)
	defer end()
	if _, err := chain.Dispatch(limited, newEvent()); err != nil || !seen {
		t.Errorf("the call that waited: %v", err)
	}
	<-ended
}
