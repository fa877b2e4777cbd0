package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func benchCommand() *cobra.Command {
	var f eventFlags
	var profile string
	n := 2000
	cmd := &cobra.Command{
		Use:   "bench X.wasm --event FILE [--hook HOOK]",
		Short: "Measure a plugin on one event, in lines that benchstat reads",
		Long: `  Call         the whole call through the proxy: decoding, the hook, applying, encoding
  Hook         the hook alone, with its p50 and p99, fuel and host calls
  Load/cold    compiling, as when the plugin is new on a node
  Load/warm    loading what is compiled already
  Instantiate  making one more instance that is ready for events
  Reset        putting an instance's memory back

The event is as in plugin run. Allocations are the proxy's, not the guest's.

--profile writes where the hook used fuel, by function, in the format of pprof, from
one more call. plugin build --debug gives functions their names.`,
		Example: `  wasmproxy plugin bench x.wasm --hook PreCreateContainer --event pod.yaml > old.txt
  benchstat old.txt new.txt
  wasmproxy plugin bench x.wasm --event testdata/x.json --profile fuel.pprof
  go tool pprof -top fuel.pprof`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 {
				return wrongUsage("-n: must be greater than 0, got %d", n)
			}
			t, err := f.try(cmd, args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			defer t.engine.Close(ctx)
			for _, note := range t.event.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", printable(note))
			}
			b := &bencher{trial: t, out: cmd.OutOrStdout(), n: n}
			fmt.Fprintf(b.out, "goos: %s\ngoarch: %s\npkg: %s\n", runtime.GOOS, runtime.GOARCH, t.plugin.beside.ID)
			if err := b.calls(ctx); err != nil {
				return err
			}
			if err := b.loads(ctx); err != nil || profile == "" {
				return err
			}
			return b.profile(ctx, profile)
		},
	}
	f.register(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", n, "how often the event happens")
	cmd.Flags().StringVar(&profile, "profile", "", "write to this `file` where the hook used fuel, for go tool pprof")
	return cmd
}

// bencher measures one plugin.
type bencher struct {
	trial
	out    io.Writer
	n      int
	timed  *timedPlugin
	loaded simulate.LoadOptions // what it was loaded with
}

// calls measures the call and, in the same calls, the hook, and then what is done between calls.
func (b *bencher) calls(ctx context.Context) error {
	cost, err := b.once(ctx)
	switch {
	case err != nil:
		return err
	case !cost.Called:
		return fmt.Errorf("%s is not called: its match does not select this pod or container", b.plugin.path)
	case cost.Err != nil:
		return fmt.Errorf("%s failed: %s", b.plugin.path, whyFailed(cost.Err))
	}
	o, load := b.options, b.options.Load
	o.Quiet = true
	o.Load = func(of simulate.LoadOptions) (plugin.Plugin, error) {
		p, err := load(of)
		b.timed, b.loaded = &timedPlugin{Plugin: p}, of
		return b.timed, err
	}
	sim, err := simulate.Open(ctx, b.event, o)
	if err != nil {
		return err
	}
	defer sim.Close(ctx)
	_ = sim.Call(ctx) // the first is slower; what it answers cost has told
	// A case that continues another one has called the plugin before.
	b.timed.took, b.timed.failed = make([]time.Duration, 0, min(b.n, 1<<20)), nil
	var calls []time.Duration
	mem := measure(func() {
		for n := 0; n < b.n && ctx.Err() == nil; n++ {
			start := time.Now()
			_ = sim.Call(ctx)
			calls = append(calls, time.Since(start))
		}
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case b.timed.failed != nil:
		return fmt.Errorf("%s failed: %s", b.plugin.path, whyFailed(b.timed.failed))
	}
	hook := b.event.Hook.String()
	b.line("Call/"+hook, calls, mem, nil)
	b.line("Hook/"+hook, b.timed.took, memory{}, map[string]float64{"fuel/op": float64(cost.Fuel), "hostcalls/op": float64(cost.HostCalls)})
	var s wasm.Steps
	mem = measure(func() { s, err = wasm.Measure(ctx, b.timed.Plugin, min(stepTimes, b.n)) })
	if err != nil {
		return err
	}
	b.line("Instantiate", s.Instantiate, mem, nil)
	if len(s.Reset) > 0 {
		b.line("Reset", s.Reset, memory{}, nil)
	}
	return nil
}

// stepTimes and loadTimes are how often what takes longer is done.
const (
	stepTimes = 50
	loadTimes = 5
)

// loads measures loading with a directory of compiled code that is empty, and again
// with what that left, each in an engine of its own, as at a start of the proxy.
func (b *bencher) loads(ctx context.Context) error {
	var cold, warm []time.Duration
	for range min(loadTimes, b.n) {
		dir, err := os.MkdirTemp("", "wasmproxy-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		for _, took := range []*[]time.Duration{&cold, &warm} {
			e, err := wasm.NewEngine(ctx, wasm.Options{CacheDir: dir})
			if err != nil {
				return err
			}
			start := time.Now()
			p, err := b.plugin.loader(ctx, e)(b.loaded)
			*took = append(*took, time.Since(start))
			if err == nil {
				err = p.Close(ctx)
			}
			e.Close(ctx)
			if err != nil {
				return err
			}
		}
	}
	b.line("Load/cold", cold, memory{}, nil)
	b.line("Load/warm", warm, memory{}, nil)
	return nil
}

// line prints one benchmark.
func (b *bencher) line(name string, took []time.Duration, mem memory, extra map[string]float64) {
	r := testing.BenchmarkResult{N: len(took), Extra: map[string]float64{}, MemAllocs: mem.allocs, MemBytes: mem.bytes}
	for unit, v := range extra {
		r.Extra[unit] = v
	}
	for _, d := range took {
		r.T += d
	}
	slices.Sort(took)
	r.Extra["p50-ns"] = float64(took[len(took)/2])
	r.Extra["p99-ns"] = float64(took[len(took)*99/100])
	text := fmt.Sprintf("Benchmark%s-%d\t%s", name, runtime.GOMAXPROCS(0), r.String())
	if mem != (memory{}) {
		text += "\t" + r.MemString()
	}
	fmt.Fprintln(b.out, text)
}

// memory is what was allocated.
type memory struct{ allocs, bytes uint64 }

func measure(f func()) memory {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return memory{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

// timedPlugin notes how long each hook took.
type timedPlugin struct {
	plugin.Plugin
	took   []time.Duration
	failed error // the first one
}

// Call implements plugin.Plugin.
func (p *timedPlugin) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	start := time.Now()
	err := p.Plugin.Call(ctx, budget, ev, adj)
	p.took = append(p.took, time.Since(start))
	_, interrupted := plugin.Interrupted(ev, err)
	switch {
	case errors.As(err, new(*plugin.Rejection)): // it may refuse the call
	case interrupted: // the next one goes on with the other pods
	case p.failed == nil:
		p.failed = err
	}
	return err
}
