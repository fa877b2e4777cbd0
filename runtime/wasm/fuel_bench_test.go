package wasm

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/pool"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// languages are those that testdata/guests/build.sh builds.
var languages = []string{"go", "tinygo", "rust"}

// buildReadWrite builds testdata/guests/readwrite. It needs the toolchains that
// make toolchains sets up.
func buildReadWrite(t testing.TB, language string) []byte {
	t.Helper()
	guests := filepath.Join("..", "..", "testdata", "guests")
	out := filepath.Join(t.TempDir(), language+".wasm")
	cmd := exec.Command(filepath.Join(guests, "build.sh"), language, filepath.Join(guests, "readwrite"), out)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the guest: %v\n%s", err, output)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkFuel is what guests pay for paying, beside what wazero's own way to stop
// them costs: one hook of one instance, of guests that only recurse, only loop, and do
// what plugins do. The three take turns, and of each the fastest call counts, so that
// figures of a busy machine can be compared.
func BenchmarkFuel(b *testing.B) {
	benchmarkLimits(b, "recursion", wat(b, "fibonacci"), "", newEvent())
	benchmarkLimits(b, "loop", wat(b, "repeat"), "-", newEvent())
	for _, language := range languages {
		module := buildReadWrite(b, language)
		benchmarkLimits(b, language+" work", module, "", asking("work"))
		benchmarkLimits(b, language+" hook", module, "", newEvent())
	}
}

func benchmarkLimits(b *testing.B, name string, module []byte, config string, ev *testEvent) {
	o := PluginOptions{Set: abi.Limits{Fuel: math.MaxInt64}, Timeout: time.Hour, Config: []byte(config)}
	bare, metered, closing := newTimed(b, module, o, true), newTimed(b, module, o, false), newTimed(b, module, o, true)
	closing.closeOnDone(b, module)
	b.Run(name, func(b *testing.B) {
		bare.least, metered.least, closing.least = math.MaxInt64, math.MaxInt64, math.MaxInt64
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // one that ends is what wazero watches
		defer cancel()
		for b.Loop() {
			bare.call(ctx, b, ev)
			metered.call(ctx, b, ev)
			closing.call(ctx, b, ev)
		}
		b.ReportMetric(float64(bare.least.Nanoseconds()), "ns-unlimited")
		b.ReportMetric(float64(metered.least.Nanoseconds()), "ns-metered")
		b.ReportMetric(float64(metered.least)/float64(bare.least), "x-metered")
		b.ReportMetric(float64(closing.least)/float64(bare.least), "x-close-on-done")
		b.ReportMetric(float64(metered.used), "fuel")
		b.ReportMetric(0, "ns/op") // of the three together, which says nothing
	})
}

// timed is a plugin of which one instance is called again and again.
type timed struct {
	*guests
	used  int64
	least time.Duration
}

func newTimed(b *testing.B, module []byte, o PluginOptions, unlimited bool) *timed {
	b.Helper()
	p, err := newEngine(b, Options{NoTimeLimit: unlimited}).Load(b.Context(), "timed", module, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(context.Background()) })
	p.(*guests).resets.Wait()
	return &timed{guests: p.(*guests)}
}

// call resets the guest and calls it.
func (p *timed) call(ctx context.Context, b *testing.B, ev *testEvent) {
	g, err := p.pool.Get(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer p.giveBack(g)
	g.restoreImage()
	c := g.newCall(ctx, abi.ExportHook, nil, ev, plugin.NewAdjustment(ev.Hook(), 2))
	start := time.Now()
	if _, err := g.enter(ctx, c, g.hook, uint64(ev.Hook())); err != nil {
		b.Fatal(err)
	}
	p.least = min(p.least, time.Since(start))
	p.used = c.meter.used()
}

// giveBack keeps a guest as long as the proxy would: memory that grows in each call
// would come to its end.
func (p *timed) giveBack(g *guest) {
	if g.reusable() {
		p.pool.Put(g)
	} else {
		p.pool.Discard(g)
	}
}

// closeOnDone gives a plugin that is not metered another runtime, in which wazero
// looks at the context where loops jump back.
func (p *timed) closeOnDone(b *testing.B, module []byte) {
	ctx := b.Context()
	config := runtimeConfig(wazero.NewCompilationCache(), settings{Pages: DefaultMemoryPages}, false)
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCloseOnContextDone(true))
	b.Cleanup(func() { r.Close(context.Background()) })
	m, err := preflight.Scan(module)
	if err != nil {
		b.Fatal(err)
	}
	if err := instantiateHost(ctx, r, m); err != nil {
		b.Fatal(err)
	}
	unmetered, err := fuel.Instrument(m, fuel.Options{Unmetered: true})
	if err != nil {
		b.Fatal(err)
	}
	code, err := r.CompileModule(ctx, unmetered)
	if err != nil {
		b.Fatal(err)
	}
	p.pool.Close()
	open := func(ctx context.Context) (*guest, error) {
		unlimited, code0 := p.runtime, p.code
		p.runtime, p.code = r, code
		defer func() { p.runtime, p.code = unlimited, code0 }()
		return p.open(ctx)
	}
	p.pool = pool.New(1, open, (*guest).close)
}

// BenchmarkEmpty is a call that does nothing: by wazero, and by us, whose calls can
// be stopped, know their event, and report their faults. The fastest of many short runs
// counts.
func BenchmarkEmpty(b *testing.B) {
	p := load(b, newEngine(b, Options{}), "noop", PluginOptions{}).(*guests)
	ev, ctx := newEvent(), b.Context()
	p.resets.Wait()
	g, err := p.pool.Get(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer p.pool.Put(g)
	bare := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(wazero.NewCompilationCache(), settings{Pages: 1}, false))
	defer bare.Close(context.Background())
	m, err := bare.Instantiate(ctx, wat(b, "noop"))
	if err != nil {
		b.Fatal(err)
	}
	f, stack, adj := m.ExportedFunction(abi.ExportHook), []uint64{0}, plugin.NewAdjustment(ev.Hook(), 2)
	ours, theirs := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	const calls = 100
	b.ReportAllocs()
	within(b, time.Hour, func(in context.Context, budget *plugin.Budget, _ plugin.Event, _ *plugin.Adjustment) error {
		for b.Loop() {
			theirs = min(theirs, took(func() {
				for range calls {
					err = errors.Join(err, f.CallWithStack(ctx, stack))
				}
			}))
			ours = min(ours, took(func() {
				for range calls {
					_, failed := g.enter(in, g.newCall(in, abi.ExportHook, budget, ev, adj), g.hook, uint64(ev.Hook()))
					err = errors.Join(err, failed)
				}
			}))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(theirs.Nanoseconds())/calls, "ns-wazero")
	b.ReportMetric(float64(ours.Nanoseconds())/calls, "ns-guest")
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
}

func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
