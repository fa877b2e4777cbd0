package intercept

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// labeled is an event about a pod with nine labels and thirteen annotations.
func labeled() *event {
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web-7d5c9f8b6d-x2x9q", Namespace: "production", Uid: "a-uid"},
		Labels:   map[string]string{}, Annotations: map[string]string{},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: "/kubepods/burstable/poda-uid",
			Resources:    &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000},
		},
	}
	for i := range 9 {
		config.Labels[fmt.Sprintf("example.com/label-%d", i)] = "a label of some length"
	}
	for i := range 13 {
		config.Annotations[fmt.Sprintf("example.com/annotation-%d", i)] = "an annotation that is a little longer"
	}
	return &event{hook: abi.PostRunPodSandbox, at: time.Now(), pod: requestedPod("0123456789abcdef", "runc", config)}
}

// alone is an event whose view nobody else has asked for.
type alone struct{ *event }

func (e alone) View(o abi.Object) ([]byte, abi.Errno) {
	e.event.outdate(o)
	return e.event.View(o)
}

// BenchmarkReads is a hook that reads n names and numbers of a pod: one by one, with a
// view after seven reads that another plugin has asked for before ("shared"), and with
// one that is made for it ("alone"). The three take turns, and of each the fastest call
// counts.
func BenchmarkReads(b *testing.B) {
	engine, err := wasm.NewEngine(b.Context(), wasm.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close(b.Context())
	for _, language := range []string{"tinygo", "go"} {
		module := build(b, language, "sdk", "internal", "reads")
		for _, n := range []int{8, 9, 10, 12, 16, 32, 64} {
			// Putting memory back would cost more than the calls.
			load := func(after int) plugin.Plugin {
				p, err := engine.Load(b.Context(), "reads", module, wasm.PluginOptions{Config: fmt.Appendf(nil, `"%d %d"`, n, after), State: abi.StateInstance})
				if err != nil {
					b.Fatal(err)
				}
				return p
			}
			each, view := load(math.MaxInt32), load(7)
			b.Run(fmt.Sprintf("%s/reads=%d", language, n), func(b *testing.B) { compareReads(b, each, view) })
			each.Close(b.Context())
			view.Close(b.Context())
		}
	}
}

func compareReads(b *testing.B, each, view plugin.Plugin) {
	shared := labeled()
	ways := []struct {
		name string
		p    plugin.Plugin
		ev   plugin.Event
	}{{"ns-each", each, shared}, {"ns-shared", view, shared}, {"ns-alone", view, alone{shared}}}
	least := [...]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	for b.Loop() {
		for i, way := range ways {
			adj, start := plugin.NewAdjustment(way.ev.Hook(), nil), time.Now()
			if err := way.p.Call(b.Context(), way.ev, adj); err != nil {
				b.Fatal(err)
			}
			least[i] = min(least[i], time.Since(start))
		}
	}
	for i, way := range ways {
		b.ReportMetric(float64(least[i].Nanoseconds()), way.name)
	}
	b.ReportMetric(0, "ns/op") // of the three together, which says nothing
}

// TestMostEntriesOfADump: a map or list of more entries than an API server takes is not
// encoded, since that would take longer than a hook has.
func TestMostEntriesOfADump(t *testing.T) {
	annotations, args := map[string]string{}, make([]string, abi.MaxEntries+1)
	for i := range abi.MaxEntries {
		annotations[fmt.Sprint(i)] = ""
	}
	e := &event{
		pod:       requestedPod("pod", "", &runtimeapi.PodSandboxConfig{Annotations: annotations}),
		container: &containerView{config: &runtimeapi.ContainerConfig{Args: args}, annotations: annotations},
	}
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		field := abi.PodAnnotations
		if o == abi.Container {
			field = abi.ContainerAnnotations
		}
		annotations["one more"] = ""
		if _, errno := e.Entries(o, field); errno != abi.TooLarge {
			t.Errorf("%d annotations of a %v: %v, want %v", len(annotations), o, errno, abi.TooLarge)
		}
		delete(annotations, "one more")
		if _, errno := e.Entries(o, field); errno != abi.OK {
			t.Errorf("%d annotations of a %v: %v", len(annotations), o, errno)
		}
	}
	if _, errno := e.List(abi.Container, abi.ContainerArgs); errno != abi.TooLarge {
		t.Errorf("%d arguments: %v, want %v", len(args), errno, abi.TooLarge)
	}
}
