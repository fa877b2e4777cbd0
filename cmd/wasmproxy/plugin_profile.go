package main

import (
	"context"
	"os"

	"github.com/google/pprof/profile"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// profile lets the event happen once, and writes where the hook used fuel, in the format of pprof.
func (b *bencher) profile(ctx context.Context, path string) (err error) {
	e, err := wasm.NewEngine(ctx, wasm.Options{}) // the code of another one may have been compiled already
	if err != nil {
		return err
	}
	defer e.Close(ctx)
	measured := wasm.NewProfile()
	o := b.options
	o.Quiet = true
	o.Load = func(of simulate.LoadOptions) (plugin.Plugin, error) {
		return b.plugin.loader(measured.Context(ctx), e)(of)
	}
	sim, err := simulate.Open(ctx, b.event, o)
	if err != nil {
		return err
	}
	defer sim.Close(ctx)
	_ = sim.Call(ctx) // what it answers cost has told

	p := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "calls", Unit: "count"}, {Type: "fuel", Unit: "count"}},
		DefaultSampleType: "fuel",
	}
	locations := map[string]*profile.Location{}
	for _, s := range measured.Samples() {
		sample := &profile.Sample{Value: []int64{s.Calls, s.Fuel}}
		for _, name := range s.Stack {
			if locations[name] == nil {
				f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
				p.Function = append(p.Function, f)
				locations[name] = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
				p.Location = append(p.Location, locations[name])
			}
			sample.Location = append(sample.Location, locations[name])
		}
		p.Sample = append(p.Sample, sample)
	}

	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := p.Write(out); err != nil {
		return err
	}
	return out.Close()
}
