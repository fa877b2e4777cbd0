package intercept

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// BenchmarkInstall installs a plugin on a node with 500 pods of four containers: Synchronize is called for each
// pod, in which the plugin sets a file and a CRI field of each container. The runtime takes 40 ms for an update. cpu-ms is the processor's time.
func BenchmarkInstall(b *testing.B) {
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		in := plainTree(b)
		in.values = nil
		o := fullNode(b, in, 500, 4)
		o.Backend, o.NewChain = slowRuntime{}, func(m ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(observe.Discard(), in.fs.Version(), m...)
		}
		var err error
		if o.Ledger, err = enforce.OpenLedger(b.Context(), b.TempDir(), observe.Discard()); err != nil {
			b.Fatal(err)
		}
		m := plugin.Member{
			ID: "10-a", Plugin: installed{}, Hooks: abi.HookSetOf(abi.Synchronize), Capabilities: abi.AllCapabilities &^ abi.CapabilitySetOf(abi.PodLimits),
		}
		before := processorTime()
		b.StartTimer()
		_, err = NewSynchronized().Sweep(b.Context(), o, m, nil)
		err = errors.Join(err, o.Queue.Drain(b.Context()))
		used += processorTime() - before
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range o.Ledger.Objects() {
			r := o.Ledger.Record(id).Values()
			if file, field := r[enforce.File("memory.high")], r[enforce.Field("cpu_quota")]; file.Read != "8388608" || field.Last != "20000" {
				b.Fatalf("the record of %v is %+v", id, r)
			}
		}
		if n, _ := o.Ledger.Len(); n != 2000 {
			b.Fatalf("%d containers have records, want 2,000", n)
		}
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// installed is the plugin.
type installed struct{}

func (installed) Manifest() abi.Manifest      { return abi.Manifest{} }
func (installed) Close(context.Context) error { return nil }
func (installed) Call(_ context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) (err error) {
	all, _, _ := ev.Containers(abi.Pod, nil)
	for _, c := range all {
		err = errors.Join(err, adj.WriteFile(c, "memory.high", "8388608"), adj.SetInt64(c, abi.Resources+abi.CPUQuota, 20_000))
	}
	return err
}

// slowRuntime takes its time for updates.
type slowRuntime struct{ enforce.Backend }

func (slowRuntime) UpdateContainerResources(
	context.Context, *runtimeapi.UpdateContainerResourcesRequest, ...grpc.CallOption,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	time.Sleep(40 * time.Millisecond)
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}
