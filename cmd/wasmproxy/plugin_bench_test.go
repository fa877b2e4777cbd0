package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// tired is a plugin of which all calls but the first ones end as then does.
type tired struct {
	plugin.Plugin
	first int // so many
	then  func() error
}

func (p *tired) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	if p.first--; p.first < 0 {
		return p.then()
	}
	return p.Plugin.Call(ctx, budget, ev, adj)
}

// Calls that fail, or are not made since the command was interrupted, are no measure of a plugin. However many were asked for, none
// is made then.
func TestBenchTellsOfFailures(t *testing.T) {
	const dir = "../../plugins-wasm/default-annotations/"
	for end, n := range map[error]int{errors.New("broken"): 10, context.Canceled: 1 << 50} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		then := func() error {
			if end == context.Canceled {
				cancel()
			}
			return end
		}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		f := eventFlags{}
		f.register(cmd)
		f.event = dir + "testdata/defaults.json"
		tried, err := f.try(cmd, dir+"default-annotations.wasm")
		if err != nil {
			t.Fatal(err)
		}
		defer tried.engine.Close(t.Context())
		load := tried.options.Load
		tried.options.Load = func(o simulate.LoadOptions) (plugin.Plugin, error) {
			p, err := load(o)
			return &tired{p, 2, then}, err
		}
		var out strings.Builder
		b := &bencher{trial: tried, out: &out, n: n}
		if err := b.calls(ctx); err == nil || !strings.Contains(err.Error(), end.Error()) || out.Len() > 0 {
			t.Errorf("calls end with %v, bench with %v, and it prints\n%s", end, err, out.String())
		}
	}
}
