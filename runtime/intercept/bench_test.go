package intercept

import (
	"context"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

func keep() (release func()) { return func() {} }

// build builds the guest in a directory as its authors would.
func build(b *testing.B, language string, dir ...string) []byte {
	b.Helper()
	root, out := filepath.Join("..", ".."), filepath.Join(b.TempDir(), language+".wasm")
	cmd := exec.Command(filepath.Join(root, "testdata", "guests", "build.sh"), language, filepath.Join(root, filepath.Join(dir...)), out)
	if output, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building the guest: %v\n%s", err, output)
	}
	m, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkHook is all that a plugin adds to a call from when its request is decoded
// until it could be sent on: the event, the chain, an instance from the pool, five reads
// and three writes, their checks, and what was asked for applied to the request. It
// needs the toolchains that make toolchains sets up.
//
// ns-hook is the fastest call, to compare figures of a busy machine; before each the
// instance has had time to be reset. ns/op is without a pause, so that a call resets
// what the one before has left, if that is large. ns-kept is the fastest of an instance that
// keeps its memory: the rest of ns-hook is caches that the reset has left cold. ns-alone is
// the same without a plugin.
func BenchmarkHook(b *testing.B) {
	e, err := wasm.NewEngine(b.Context(), wasm.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close(context.Background()) })
	for _, language := range []string{"go", "tinygo", "rust"} {
		module := build(b, language, "testdata", "guests", "readwrite")
		load := func(o wasm.PluginOptions) plugin.Member {
			p, err := e.Load(b.Context(), language, module, o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { p.Close(context.Background()) })
			return plugin.Member{
				ID: language, Plugin: p, Metered: true, Hooks: abi.HookSetOf(abi.PreCreateContainer),
				Breaker: plugin.NewBreaker(observe.Discard(), language, nil), Capabilities: abi.DefaultGrant(),
			}
		}
		with, kept, alone := creating(b, load(wasm.PluginOptions{})), creating(b, load(wasm.PluginOptions{State: abi.StateInstance})), creating(b)
		b.Run(language, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				with.hook(b)
			}
			b.StopTimer()
			b.ReportMetric(with.fastest(b), "ns-hook")
			b.ReportMetric(kept.fastest(b), "ns-kept")
			b.ReportMetric(alone.fastest(b), "ns-alone")
		})
	}
}

// creating returns the call of CreateContainer that every hook is part of.
func creating(b *testing.B, members ...plugin.Member) *call {
	b.Helper()
	store := pods.NewStore()
	pod := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web-0", Namespace: "prod", Uid: "u1"},
		Labels:   map[string]string{"tier": "gold", "app": "web"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/burstable/podu1"},
	}
	run := &runtimeapi.RunPodSandboxRequest{Config: pod, RuntimeHandler: "runc"}
	store.Observe(nil, run, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	log := slogsink.New(slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	i := &interceptor{Options: Options{
		Enforcer: enforce.Enforcer{
			Observer: log, Store: store, Ledger: enforce.NewLedger(), Queue: workqueue.New(), Node: &crifield.Node{CgroupVersion: 2, RuntimeName: "containerd", RuntimeVersion: "v2"},
		},
		Chain: plugin.NewChain(log, 2, members...), Keep: keep, CallTime: DefaultCallTime,
	}}
	for _, m := range cri.Methods {
		if m.Pre == abi.PreCreateContainer {
			i.method = m
		}
	}
	return &call{interceptor: i, Call: &cri.Call{}, req: &runtimeapi.CreateContainerRequest{
		PodSandboxId: "pod1", SandboxConfig: pod,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"},
			Linux:    &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000}},
		},
	}}
}

// hook takes a call of the same request through its pre hook. The guest sets the same
// values each time.
func (c *call) hook(b *testing.B) {
	one := &call{interceptor: c.interceptor, Call: c.Call, req: c.req}
	if err := one.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := one.pre(b.Context(), b.Context()); err != nil {
		b.Fatal(err)
	}
	if want := 3 * min(1, int(one.Chain.Hooks())); len(one.owned) != want {
		b.Fatalf("%d changes were asked for, want %d", len(one.owned), want)
	}
}

// fastest is how many nanoseconds the fastest of many calls takes.
func (c *call) fastest(b *testing.B) float64 {
	least := time.Duration(math.MaxInt64)
	for n := range 20_000 {
		for paused := time.Now(); n < 2000 && time.Since(paused) < 300*time.Microsecond; {
			// a pause that keeps caches warm, in which large instances are reset
		}
		start := time.Now()
		c.hook(b)
		least = min(least, time.Since(start))
	}
	return float64(least.Nanoseconds())
}
