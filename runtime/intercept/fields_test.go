package intercept_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
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
	v := n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Values()[enforce.Field(name)]
	if len(v.Wishes) > 0 {
		owner, wish = v.Wishes[0].Plugin, v.Wishes[0].Value
	}
	if v.Kubelet != nil {
		kubelet = *v.Kubelet
	}
	return owner, wish, kubelet, v.Last
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
	n.hasField("cpu_quota", "10-test", "100000", "50000", "100000")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 70_000}))
	n.hasField("cpu_quota", "", "", "", "")
	n.hasField("cpuset_cpus", "10-test", "1", "0-1", "1")
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, twice))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 30_000}))
	m.hasField("cpu_quota", "10-test", "60000", "30000", "60000")
}

// While a container is created, the store learns of it from the runtime, and an event of another pod changes it. What the plugin
// has made of it by then is not taken for kubelet's.
func TestContainerThatIsChangedWhileItIsCreated(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	n.updating = func() {
		n.describeAs("c1", decodeSent[runtimeapi.CreateContainerRequest](n).GetConfig())
		_, err := n.store.ReadContainer(t.Context(), &n.backend, "c1")
		n.updating = nil
		n.must(errors.Join(err, n.with(withCgroups(fs), give(200_000)).second()))
		n.hasField("cpu_quota", "10-test", "200000", "100000", "200000")
	}
	_, err = n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	n.hasField("cpu_quota", "10-test", "200000", "50000", "200000") // the later wish holds
}

// What a plugin sets in an update that names no resource is not kubelet's.
func TestUpdateThatNamesNoResource(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 70_000)
	})})
	n.runPod()
	n.begin()
	for range 2 {
		n.must(n.updateC1(nil))
		n.hasField("cpu_quota", "10-test", "70000", "50000", "70000")
	}
}

// After a restart, kubelet may update a container of which the runtime tells nothing yet. The plugin's wish ends all the same with
// kubelet's new value, which is not overwritten with an earlier one.
func TestUpdateOfAContainerThatCannotBeRead(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.begin()
	m := newNode(t, nil, withCgroups(fs), withLedger(n.options.Ledger))
	m.backend.down = true
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 70_000}))
	m.hasField("cpu_quota", "", "", "", "")
	m.hasField("cpuset_cpus", "10-test", "1", "0-1", "1")
}

// A plugin that is removed leaves kubelet's values in the runtime, as far as an update can set
// them. The record of the others stays.
func TestFieldsOfARemovedPluginAreReset(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.withdraw("10-test")
	n.hasField("cpu_quota", "", "", "", "")
	n.hasField("unified[memory.high]", "", "", "", "")
	want := []*runtimeapi.UpdateContainerResourcesRequest{{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{
		CpuQuota: 50_000, CpuPeriod: 100_000, CpusetCpus: "0-1", Unified: map[string]string{"memory.high": "100"},
	}}}
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
	m.withdraw("10-test")
	m.hasField("cpu_quota", "", "", "-1", "20000")
	last := m.backend.updates[len(m.backend.updates)-1]
	if last.GetLinux().GetCpuQuota() != -1 {
		t.Errorf("the reset is %v", last)
	}
}

// When kubelet sends again what it has asked for before, as its CPU manager and a resize of
// another resource do, the runtime gets the plugin's value; another value passes.
func TestPluginsValueIsSentAgain(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.begin()
	update := func(n *node, r *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
		n.t.Helper()
		n.must(n.updateC1(r))
		return decodeSent[runtimeapi.UpdateContainerResourcesRequest](n).GetLinux()
	}
	kubelets := &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpusetCpus: "0-1", MemoryLimitInBytes: 1 << 28, Unified: map[string]string{"memory.high": "100"}}
	want := &runtimeapi.LinuxContainerResources{CpuQuota: 100_000, CpusetCpus: "1", MemoryLimitInBytes: 1 << 28, Unified: map[string]string{"memory.high": "200"}}
	for range 2 {
		if diff := cmp.Diff(want, update(n, kubelets), protocmp.Transform()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	}
	n.hasField("cpu_quota", "10-test", "100000", "50000", "100000")
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, twice))
	if got := update(m, kubelets); got.GetCpuQuota() != 100_000 {
		t.Errorf("a plugin that doubles kubelet's quota of 50000 in each update makes it %d", got.GetCpuQuota())
	}
	m.must(m.queue.Drain(t.Context()))
	if got := update(n, &runtimeapi.LinuxContainerResources{CpuQuota: 60_000}); got.GetCpuQuota() != 60_000 {
		t.Errorf("kubelet's new quota of 60000 is sent as %d", got.GetCpuQuota())
	}
	n.hasField("cpu_quota", "", "", "", "")
}

// kubelet names the period without a quota for a container without a CPU limit. crun takes that for no quota, so that a plugin's is
// sent with it. What the runtime would refuse is not, nor what no plugin wants.
func TestPluginsValueIsSentWithItsPartner(t *testing.T) {
	type resources = runtimeapi.LinuxContainerResources
	set := on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 20_000), adj.SetInt64(abi.Container, abi.Resources+abi.MemorySwap, 1<<28))
	})
	n := newNode(t, []plugin.Member{set})
	create := createRequest()
	create.Config.Linux.Resources = &resources{CpuPeriod: 100_000, CpuShares: 512, MemoryLimitInBytes: 1 << 27}
	n.runPodWith(podConfig(), create)
	n.begin()
	for _, test := range []struct{ kubelets, want *resources }{
		{&resources{CpuPeriod: 100_000, CpuShares: 256}, &resources{CpuPeriod: 100_000, CpuShares: 256, CpuQuota: 20_000}},
		{&resources{MemoryLimitInBytes: 1 << 28}, &resources{MemoryLimitInBytes: 1 << 28, MemorySwapLimitInBytes: 1 << 28}},
		{&resources{MemoryLimitInBytes: 1 << 29}, &resources{MemoryLimitInBytes: 1 << 29}},
		{&resources{CpuShares: 128}, &resources{CpuShares: 128}},
		{nil, nil},
	} {
		n.must(n.updateC1(test.kubelets))
		if diff := cmp.Diff(test.want, decodeSent[runtimeapi.UpdateContainerResourcesRequest](n).GetLinux(), protocmp.Transform()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		n.hasField("cpu_quota", "10-test", "20000", "-1", "20000")
	}
	n.withdraw("10-test")
	n.must(n.updateC1(&resources{CpuPeriod: 100_000}))
	if got := decodeSent[runtimeapi.UpdateContainerResourcesRequest](n).GetLinux().GetCpuQuota(); got != 0 {
		t.Errorf("without the plugin the update has a quota of %d", got)
	}
}

// With the end of cpu.idle an update names the container's share for the runtime's sake. That is no new value of kubelet's.
func TestShareThatAnUpdateNamesWithTheEndOfIdle(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 700)
	})}, withCgroups(fs))
	n.runPod()
	n.begin()
	m := n.with(withCgroups(fs), named("20-idle", abi.PreUpdateContainerResources, write(abi.Container, "cpu.idle", "0")))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpusetCpus: "0-1"}))
	if got := decodeSent[runtimeapi.UpdateContainerResourcesRequest](m).GetLinux().GetCpuShares(); got != 700 {
		t.Errorf("the update names %d shares", got)
	}
	m.hasField("cpu_shares", "10-test", "700", "512", "700")
}

// A plugin that wants another value of a resource than a plugin of an earlier hook gets CONFLICT
// from the setter, unless kubelet gives the resource a new value in the same call.
func TestConflictAcrossHooksOverAField(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	var err error
	wants := func(quota int64) plugin.Member {
		m := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			err = adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, quota)
			return nil
		})
		m.ID = "05-other"
		return m
	}
	for _, c := range []struct {
		kubelet, wants int64
		conflict       bool
	}{{0, 20_000, true}, {50_000, 20_000, true}, {50_000, 100_000, false}, {60_000, 20_000, false}} {
		m := n.with(withCgroups(fs), wants(c.wants))
		m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7, CpuQuota: c.kubelet}))
		if errors.Is(err, abi.Conflict) != c.conflict || err != nil != c.conflict {
			t.Errorf("kubelet sends %d, the plugin wants %d: %v", c.kubelet, c.wants, err)
		}
		m.must(m.queue.Drain(t.Context()))
	}
	n.hasField("cpu_quota", "05-other", "20000", "60000", "20000")
	other := on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, wrong := neighbour(ev)
		err = errors.Join(wrong, adj.SetInt64(o, abi.Resources+abi.CPUQuota, 30_000))
		return nil
	})
	m := n.with(withCgroups(fs), other)
	m.must(m.second())
	if !errors.Is(err, abi.Conflict) {
		t.Errorf("through a handle: %v", err)
	}
}

// What the runtime refuses to reset is tried again by scans, once a minute at most, and with the next call of
// the pod, and told of once.
func TestFailedResetIsTriedAgain(t *testing.T) {
	for _, again := range []string{"scan", "update", "start of a sibling"} {
		synctest.Test(t, func(t *testing.T) { testFailedReset(t, again) })
	}
}

func testFailedReset(t *testing.T, again string) {
	var events observe.Recorder
	n, _, _ := running(t, withObserver(&events))
	n.must(n.queue.Drain(t.Context()))
	n.backend.refuses = errors.New("no")
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	n.options.Scan(t.Context()) // within a minute
	n.must(n.queue.Drain(t.Context()))
	time.Sleep(time.Minute)
	n.options.Scan(t.Context())
	n.must(n.queue.Drain(t.Context()))
	if told := observe.All[*observe.FieldsNotReset](events.Take()); len(told) != 1 || len(n.backend.updates) != 2 {
		t.Fatalf("%s: %d events of %d failed resets", again, len(told), len(n.backend.updates))
	}
	n.backend.refuses = nil
	switch again {
	case "scan":
		time.Sleep(time.Minute)
		n.options.Scan(t.Context())
	case "update":
		n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 40_000}))
	default:
		_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
		n.must(err)
		_, err = n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
		n.must(err)
	}
	n.must(n.queue.Drain(t.Context()))
	if len(n.backend.updates) != 3 || n.backend.updates[2].GetLinux().GetCpuShares() != 512 {
		t.Errorf("%s: the resets are %v", again, n.backend.updates)
	}
	n.options.Scan(t.Context())
	n.must(n.queue.Drain(t.Context()))
	if len(n.backend.updates) != 3 {
		t.Errorf("%s: it was reset once more: %v", again, n.backend.updates)
	}
}

// While the runtime has kubelet's update, a plugin is removed that has just asked again: what the runtime is then sent is
// not kubelet's value of before the update.
func TestPluginIsRemovedWhileKubeletUpdates(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 70_000)
	})})
	n.runPod()
	n.begin()
	n.must(n.update(60_000))
	n.must(n.queue.Drain(t.Context()))
	n.updating = func() { n.options.Withdraw(t.Context(), removed("10-test")) }
	n.must(n.update(65_000))
	n.must(n.queue.Drain(t.Context()))
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	var sent []int64
	for _, u := range n.backend.updates {
		sent = append(sent, u.GetLinux().GetCpuQuota())
	}
	if diff := cmp.Diff([]int64{65_000}, sent); diff != "" {
		t.Errorf("quotas that the proxy has sent (-want +got):\n%s", diff)
	}
}
