package intercept_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// twice doubles the CPU quota, and sets a cpuset and a unified key.
func twice(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	quota, _ := ev.Int64(abi.Container, abi.Resources+abi.CPUQuota)
	return errors.Join(
		adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 2*quota), adj.SetText(abi.Container, abi.Resources+abi.CpusetCpus, "1"),
		adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "memory.high", "200"))
}

// field is what the ledger knows of a CRI field of c1.
func (n *node) field(name string) (owner, wish, kubelet, sent string) {
	n.t.Helper()
	n.must(n.queue.Drain(n.t.Context()))
	v := n.options.Ledger.Record(ledger.ID{Pod: "u1", Container: "c1"})[ledger.Field(name)]
	if len(v.Wishes) > 0 {
		owner, wish = v.Wishes[0].Plugin, v.Wishes[0].Value
	}
	if v.Kubelet != nil {
		kubelet = *v.Kubelet
	}
	return owner, wish, kubelet, v.Sent
}

func (n *node) hasField(name string, want ...string) {
	n.t.Helper()
	owner, wish, kubelet, sent := n.field(name)
	if diff := cmp.Diff(want, []string{owner, wish, kubelet, sent}); diff != "" {
		n.t.Errorf("%s: owner, wish, kubelet's and sent (-want +got):\n%s", name, diff)
	}
}

// The ledger knows what kubelet asked for, what a plugin wants in its place and what the runtime
// was sent; a wish ends when kubelet sends another value and the plugin does not repeat it.
func TestFieldsOfCallsAreNoted(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.hasField("cpu_quota", "10-test", "100000", "50000", "100000")
	n.hasField("cpuset_cpus", "10-test", "1", "0-1", "1")
	n.hasField("unified[memory.high]", "10-test", "200", "100", "200")
	n.hasField("cpu_shares", "", "", "", "") // no plugin has anything to do with it
	n.begin()
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 50_000}))
	n.hasField("cpu_quota", "10-test", "100000", "50000", "50000")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 70_000}))
	n.hasField("cpu_quota", "", "", "", "")
	n.hasField("cpuset_cpus", "10-test", "1", "0-1", "1")
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, twice))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 30_000}))
	m.hasField("cpu_quota", "10-test", "60000", "30000", "60000")
}

// A plugin that is removed leaves kubelet's values in the runtime, as far as an update can set
// them. The record of the others stays.
func TestFieldsOfARemovedPluginAreReset(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	intercept.Withdraw(t.Context(), n.options, removed("10-test"))
	n.hasField("cpu_quota", "", "", "", "")
	n.hasField("unified[memory.high]", "", "", "100", "200")
	want := []*runtimeapi.UpdateContainerResourcesRequest{{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpusetCpus: "0-1"}}}
	if diff := cmp.Diff(want, n.backend.updates, protocmp.Transform()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

// So does one that changed a container from another event; without a quota of kubelet's, the
// reset says that there is none.
func TestFieldsOfAnotherContainerAreReset(t *testing.T) {
	n := newNode(t, nil)
	n.runPod()
	n.begin()
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: -1}))
	m := n.with(func(*intercept.Options) {}, on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, err := neighbour(ev)
		return errors.Join(err, adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000))
	}))
	m.must(m.second())
	m.hasField("cpu_quota", "10-test", "20000", "-1", "20000")
	m.backend.refuses = errors.New("no")
	intercept.Withdraw(t.Context(), m.options, removed("10-test"))
	m.hasField("cpu_quota", "", "", "-1", "20000")
	last := m.backend.updates[len(m.backend.updates)-1]
	if last.GetLinux().GetCpuQuota() != -1 {
		t.Errorf("the reset is %v", last)
	}
}
