package rust

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// event is one about a pod with nine labels and thirteen annotations.
func event(b *testing.B, hook abi.Hook) plugin.Event {
	labels, annotations := map[string]string{}, map[string]string{}
	for i := range 9 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = "a label of some length"
	}
	for i := range 13 {
		annotations[fmt.Sprintf("example.com/annotation-%d", i)] = strings.Repeat("an annotation ", 3)
	}
	c := fixture.Case{Hook: hook, Pod: fixture.Fields{
		"id": strings.Repeat("0123456789abcdef", 4), "namespace": "production", "name": "web-7d5c9f8b6d-x2x9q", "uid": "a-uid",
		"qos": "Burstable", "cgroup_parent": "/kubepods/burstable/poda-uid", "labels": labels, "annotations": annotations,
		"resources.cpu_quota": 50_000, "resources.cpu_period": 100_000,
	}}
	if hook == abi.PreCreateContainer {
		c.Container = fixture.Fields{"name": "web", "resources.cpu_quota": 50_000, "resources.memory_limit_in_bytes": 1 << 28}
	}
	ev, err := c.NewEvent()
	if err != nil {
		b.Fatal(err)
	}
	return ev
}

// BenchmarkReads is a hook that reads a pod n times, one by one, and with the flat record
// after the eighth read: one that another plugin has asked for before.
func BenchmarkReads(b *testing.B) {
	for _, build := range [][]string{{"one by one", "--no-default-features"}, {"view"}} {
		file := reads(b, build[1:]...)
		for _, n := range []int{4, 8, 12, 16, 32, 64} {
			p := load(b, file, n)
			b.Run(fmt.Sprintf("reads=%d/%s", n, build[0]), func(b *testing.B) { benchmark(b, p, event(b, abi.PostRunPodSandbox)) })
		}
	}
}

// BenchmarkHook is a hook of five reads and three writes.
func BenchmarkHook(b *testing.B) {
	benchmark(b, load(b, reads(b), 0), event(b, abi.PreCreateContainer))
}

// reads builds the example of this name, and returns its file.
func reads(b *testing.B, args ...string) string {
	dir := cargo(b, nil, append([]string{"build", "--quiet", "--release", "--target", target, "--example", "reads"}, args...)...)
	return filepath.Join(dir, target, "release", "examples", "reads.wasm")
}

func load(b *testing.B, file string, config int) plugin.Plugin {
	module, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := wasm.NewEngine(b.Context(), wasm.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	p, err := engine.Load(b.Context(), "reads", module, wasm.PluginOptions{Config: fmt.Append(nil, config)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(context.Background()); engine.Close(context.Background()) })
	return p
}

func benchmark(b *testing.B, p plugin.Plugin, ev plugin.Event) {
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Call(b.Context(), ev, plugin.NewAdjustment(ev.Hook(), nil)); err != nil {
			b.Fatal(err)
		}
	}
}
