package wasm

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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
