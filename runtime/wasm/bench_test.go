package wasm

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// BenchmarkHook is one call of a small guest, as a chain makes it.
func BenchmarkHook(b *testing.B) {
	for _, unlimited := range []bool{false, true} {
		e := newEngine(b, Options{NoTimeLimit: unlimited})
		for _, guest := range []string{"noop", "quota", "everything"} {
			b.Run(guest+map[bool]string{false: "", true: "/no time limit"}[unlimited], func(b *testing.B) {
				benchmarkCall(b, load(b, e, guest, PluginOptions{}))
			})
		}
	}
}

func benchmarkCall(b *testing.B, p plugin.Plugin) {
	ev, ctx := newEvent(), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := callPlugin(ctx, p, ev); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFuel is what guests pay for paying: one hook of one instance, metered and
// not, of guests that only recurse, only loop, and do what plugins do.
func BenchmarkFuel(b *testing.B) {
	tinygo, err := os.ReadFile(filepath.Join("..", "..", "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		b.Fatal(err)
	}
	for _, guest := range []struct {
		name   string
		module []byte
		config string
		event  *testEvent
	}{
		{"recursion", wat(b, "fibonacci"), "", newEvent()},
		{"loop", wat(b, "repeat"), "-", newEvent()},
		{"tinygo", tinygo, "", newEvent()},
		{"go", buildGuest(b), "", asking("work")},
	} {
		for name, unlimited := range map[string]bool{"metered": false, "not metered": true} {
			b.Run(guest.name+"/"+name, func(b *testing.B) {
				o := PluginOptions{Fuel: math.MaxInt64, Timeout: time.Hour, Config: []byte(guest.config)}
				p, err := newEngine(b, Options{NoTimeLimit: unlimited}).Load(b.Context(), guest.name, guest.module, o)
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close(context.Background())
				benchmarkGuest(b, p.(*guests), guest.event)
			})
		}
	}
}

// benchmarkGuest calls one instance again and again.
func benchmarkGuest(b *testing.B, p *guests, ev *testEvent) {
	ctx := context.Background()
	g, err := p.pool.Get(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer p.pool.Put(g)
	g.ready()
	used := int64(0)
	for b.Loop() {
		c := g.newCall(ctx, "", ev, plugin.NewAdjustment(ev.Hook(), v2{}))
		if _, err := g.enter(ctx, c, g.hook, uint64(ev.Hook())); err != nil {
			b.Fatal(err)
		}
		used = c.meter.used()
	}
	b.ReportMetric(float64(used), "fuel/op")
}

// BenchmarkHostFunction is one call of a host function by a guest; "none" is what
// the guest's own loop costs.
func BenchmarkHostFunction(b *testing.B) {
	const repeated = 900
	e := newEngine(b, Options{})
	for _, name := range []string{"none", "get", "i get_i64", "map_get", "d map_dump", "set_i64", "now"} {
		b.Run(name, func(b *testing.B) {
			config := map[bool]string{true: "-", false: name}[name == "none"]
			benchmarkCall(b, load(b, e, "repeat", PluginOptions{Config: []byte(config)}))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/repeated, "ns/hostcall")
		})
	}
}

// BenchmarkLoad loads plugins: cold, and warm, when another plugin of the same
// module is loaded.
func BenchmarkLoad(b *testing.B) {
	tinygo, err := os.ReadFile(filepath.Join("..", "..", "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		b.Fatal(err)
	}
	for name, module := range map[string][]byte{"wat": wat(b, "quota"), "tinygo": tinygo, "go": buildGuest(b)} {
		e := newEngine(b, Options{})
		loop := func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := e.Load(b.Context(), "p", module, PluginOptions{})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				p.Close(b.Context())
				b.StartTimer()
			}
		}
		b.Run(name+"/cold", loop)
		b.Run(name+"/warm", func(b *testing.B) {
			other, err := e.Load(b.Context(), "other", module, PluginOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer other.Close(context.Background())
			loop(b)
		})
	}
}
