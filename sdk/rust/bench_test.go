package rust

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// event is one about a pod with nine labels and thirteen annotations.
func event() fixture.Case {
	labels, annotations := map[string]string{}, map[string]string{}
	for i := range 9 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = "a label of some length"
	}
	for i := range 13 {
		annotations[fmt.Sprintf("example.com/annotation-%d", i)] = strings.Repeat("an annotation ", 3)
	}
	return fixture.Case{Hook: abi.PreCreateContainer, Pod: fixture.Fields{
		"id": strings.Repeat("0123456789abcdef", 4), "namespace": "production", "name": "web-7d5c9f8b6d-x2x9q", "uid": "a-uid",
		"qos": "Burstable", "cgroup_parent": "/kubepods/burstable/poda-uid", "labels": labels, "annotations": annotations,
		"resources.cpu_quota": 50_000, "resources.cpu_period": 100_000,
	}, Container: fixture.Fields{"name": "web", "resources.cpu_quota": 50_000, "resources.memory_limit_in_bytes": 1 << 28}}
}

// BenchmarkHook is a hook of five reads and three writes.
func BenchmarkHook(b *testing.B) {
	p := load(b, reads(b))
	_, err := simulate.RunCase(b.Context(), event(), func(simulate.LoadOptions) (plugin.Plugin, error) { return repeated{p, b}, nil })
	if err != nil {
		b.Fatal(err)
	}
}

// reads builds the example of this name, and returns its file.
func reads(b *testing.B) string {
	dir := cargo(b, nil, "build", "--quiet", "--release", "--target", target, "--example", "reads")
	return filepath.Join(dir, target, "release", "examples", "reads.wasm")
}

func load(b *testing.B, file string) plugin.Plugin {
	module, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := wasm.NewEngine(b.Context(), wasm.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p, err := engine.Load(b.Context(), "reads", module, wasm.PluginOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(context.Background()); engine.Close(context.Background()) })
	return p
}

// repeated is a plugin that is called with one event again and again.
type repeated struct {
	plugin.Plugin
	b *testing.B
}

// Close leaves the plugin to the benchmark.
func (repeated) Close(context.Context) error { return nil }

// Call implements plugin.Plugin. It takes longer than a call may.
func (p repeated) Call(ctx context.Context, _ *plugin.Budget, ev plugin.Event, _ *plugin.Adjustment) error {
	ctx = context.WithoutCancel(ctx)
	p.b.ReportAllocs()
	for p.b.Loop() {
		if err := p.Plugin.Call(ctx, nil, ev, plugin.NewAdjustment(ev.Hook(), 0)); err != nil {
			p.b.Fatal(err)
		}
	}
	return nil
}
