package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// doubling is a plugin that doubles the quota of containers, with these capabilities.
func doubling(hooks abi.HookSet, has abi.CapabilitySet) plugin.Member {
	return plugin.Member{ID: "10-doubling", Hooks: hooks, Capabilities: has, Rights: plugin.Rights{Declared: abi.AllCapabilities, Granted: has},
		Plugin: function(func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			quota, _ := ev.Int64(abi.Container, abi.Resources+abi.CPUQuota)
			return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 2*quota)
		})}
}

// TestQuotaAbovePodIsRefused has a container that is to get more than its pod: it is made with
// kubelet's quota, and the log names both.
func TestQuotaAbovePodIsRefused(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.DefaultGrant())}, withCgroups(fs))
	n.runPod()
	if sent := decodeSent[runtimeapi.CreateContainerRequest](n); sent.GetConfig().GetLinux().GetResources().GetCpuQuota() != 50_000 {
		t.Errorf("the runtime gets %v", sent.GetConfig().GetLinux().GetResources())
	}
	if log := n.log.String(); !strings.Contains(log, `cpu.max \"100000 100000\" would be above the pod's, \"50000 100000\"`) {
		t.Errorf("the log is\n%s", log)
	}
}

// raising is a node with a container whose quota a plugin has doubled when it was created, and
// may double in updates. The pod's quota was the container's.
func raising(t *testing.T, opts ...option) (n *node, pod string) {
	fs, pod, _ := scratchGroup(t)
	hooks := abi.HookSetOf(abi.PreCreateContainer)
	n = newNode(t, []plugin.Member{doubling(hooks, abi.AllCapabilities)}, append(opts, withCgroups(fs))...)
	config := podWithoutOverhead()
	n.runPodWith(config, createRequest())
	if got := content(t, pod, "cpu.max"); got != "max 100000" {
		t.Fatalf("before the container starts the pod has cpu.max %q", got)
	}
	n.begin()
	return n, pod
}

func (n *node) wantCPU(pod, want, when string) {
	n.t.Helper()
	if got := content(n.t, pod, "cpu.max"); got != want {
		n.t.Errorf("%s the pod has cpu.max %q, want %q", when, got, want)
	}
}

func (n *node) stop(id string) {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: id}, &runtimeapi.StopContainerResponse{})
	n.must(err)
}

// TestPodLimitComesBack has kubelet's limit of the pod come back with what it was lifted for.
func TestPodLimitComesBack(t *testing.T) {
	for name, end := range map[string]func(*node){
		"the container stops": func(n *node) { n.stop("c1") },
		"the container is removed": func(n *node) {
			_, err := n.call(n.t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
			n.must(err)
		},
		"kubelet resizes it, and the plugin does not ask again": func(n *node) {
			n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 40_000, CpuPeriod: 100_000}))
		},
		"the plugin is removed": func(n *node) {
			n.withdraw("10-doubling")
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, pod := raising(t)
			n.backend.hear = func() { n.wantCPU(pod, "max 100000", "until the container has its quota") }
			end(n)
			n.must(n.queue.Drain(t.Context()))
			n.wantCPU(pod, "50000 100000", "in the end")
		})
	}
}

// TestPodLimitOfKubelet has kubelet write the pod's limit while it is lifted: kubelet's new value comes back
// in the end. Above the container's it is not lifted.
func TestPodLimitOfKubelet(t *testing.T) {
	n, pod := raising(t)
	put(t, pod, "cpu.max", "80000 100000")
	for range 2 {
		n.options.Scan(t.Context())
		n.wantCPU(pod, "max 100000", "after kubelet's write")
	}
	put(t, pod, "cpu.max", "200000 100000")
	for range 2 { // the first finds kubelet's value
		n.options.Scan(t.Context())
	}
	n.wantCPU(pod, "200000 100000", "with more than the container has")
	put(t, pod, "cpu.max", "80000 100000")
	n.withdraw("10-doubling")
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "80000 100000", "without the plugin")
}

// resizing is a node whose plugin doubles the quota in updates, too.
func resizing(t *testing.T) (n *node, pod string) {
	n, pod = raising(t)
	return n.with(withCgroups(n.options.Cgroups), doubling(abi.HookSetOf(abi.PreUpdateContainerResources), abi.AllCapabilities)), pod
}

// TestPodLimitInResizes resizes a container in the orders of kubelet 1.35, which writes the pod's limit
// and then tells the runtime, and of 1.36, which tells it first. kubelet writes the pod's limit before the
// container's on the way up, and after it on the way down.
func TestPodLimitInResizes(t *testing.T) {
	for name, tellsFirst := range map[string]bool{"1.35": false, "1.36": true} {
		for _, quota := range []int64{30_000, 50_000, 90_000, 100_000, 120_000} {
			t.Run(fmt.Sprint(name, " to ", quota), func(t *testing.T) {
				n, pod := resizing(t)
				kubelet := fmt.Sprint(quota, " 100000")
				write := func() {
					if tellsFirst {
						r := &runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}
						_, err := n.call(t.Context(), "UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1", Resources: r}, &runtimeapi.UpdatePodSandboxResourcesResponse{})
						n.must(err)
					}
					put(t, pod, "cpu.max", kubelet)
					if !tellsFirst {
						r := &runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}
						_, err := n.call(t.Context(), "UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1", Resources: r}, &runtimeapi.UpdatePodSandboxResourcesResponse{})
						n.must(err)
					}
				}
				update := func() {
					n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}))
					n.must(n.queue.Drain(t.Context()))
				}
				if quota > 50_000 {
					write()
					update()
				} else {
					update()
					write()
				}
				n.options.Scan(t.Context())
				n.wantCPU(pod, "max 100000", "while the container has twice as much")
				n.withdraw("10-doubling")
				n.must(n.queue.Drain(t.Context()))
				n.wantCPU(pod, kubelet, "without the plugin")
			})
		}
	}
}

// TestPodLimitOfTwoContainers keeps the limit lifted until no container has a higher one.
func TestPodLimitOfTwoContainers(t *testing.T) {
	n, pod := raising(t)
	put(t, pod, "cpu.max", "90000 100000") // of both
	second := createRequest()
	second.Config.Metadata.Name, second.Config.Linux.Resources.CpuQuota = "second", 60_000
	_, err := n.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.wantCPU(pod, "max 100000", "with two containers")
	n.stop("c1")
	n.wantCPU(pod, "max 100000", "with the second, which has 120000")
	n.stop("c2")
	n.wantCPU(pod, "90000 100000", "without")
}

// TestPodLimitOfAnEphemeralContainer lifts and resizes a pod with an ephemeral container, which has no limits.
func TestPodLimitOfAnEphemeralContainer(t *testing.T) {
	n, pod := resizing(t)
	debug := createRequest()
	debug.Config.Metadata.Name, debug.Config.Linux.Resources = "debugger", &runtimeapi.LinuxContainerResources{CpuShares: 2}
	_, err := n.call(t.Context(), "CreateContainer", debug, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 20_000, CpuPeriod: 100_000}))
	n.must(n.queue.Drain(t.Context()))
	put(t, pod, "cpu.max", "20000 100000")
	n.options.Scan(t.Context())
	n.wantCPU(pod, "max 100000", "with 40000 of the container")
	n.withdraw("10-doubling")
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "20000 100000", "without the plugin")
}

// TestPodWithResourcesOfItsOwn is not lifted: its limit is less than what its container has by kubelet, or
// more than its containers have together. The log has a line at the container's start.
func TestPodWithResourcesOfItsOwn(t *testing.T) {
	for _, own := range []string{"30000 100000", "90000 100000"} {
		fs, pod, _ := scratchGroup(t)
		var events observe.Recorder
		n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs), withObserver(&events))
		config := podWithoutOverhead()
		put(t, pod, "cpu.max", own)
		n.runPodWith(config, createRequest())
		n.begin()
		n.options.Scan(t.Context())
		n.wantCPU(pod, own, "with limits of its own")
		stays := observe.All[*observe.PodLimitStays](events.Take())
		if len(stays) != 1 || stays[0].File != "cpu.max" || stays[0].Value != own || stays[0].Plugin != "10-doubling" || stays[0].ContainerID != "c1" {
			t.Errorf("with %s told %+v", own, stays)
		}
		r, err := n.options.Explain(t.Context(), "prod/web")
		n.must(err)
		if want := "the pod has resources of its own, or containers to come, so that its cpu.max is not lifted from " + own + " for 10-doubling"; r.Pods[0].Containers[0].Capped != want {
			t.Errorf("explained as %q, want %q", r.Pods[0].Containers[0].Capped, want)
		}
	}
}

// TestPodWithContainersToCome is lifted once it has them all. Till then, nothing tells it from one with resources of its own.
func TestPodWithContainersToCome(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	var events observe.Recorder
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs), withObserver(&events))
	put(t, pod, "cpu.max", "60000 100000")
	n.runPodWith(podWithoutOverhead(), createRequest())
	n.begin()
	n.wantCPU(pod, "60000 100000", "with one of two containers")
	var said []string
	for _, e := range observe.All[*observe.PodLimitStays](events.Take()) {
		said = append(said, e.ContainerID)
	}
	if !slices.Equal(said, []string{"c1"}) || !strings.Contains(n.log.String(), "or containers to come") {
		t.Errorf("told of %q: %s", said, n.log)
	}
	second := createRequest()
	second.Config.Metadata.Name, second.Config.Linux.Resources.CpuQuota = "second", 10_000
	_, err := n.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.wantCPU(pod, "max 100000", "with both")
}

// TestPodMemoryIsNotBelowUsage ends a lifted memory limit while the pod uses more than kubelet's. It was the
// node's memory: kubelet takes "max" for -1.
func TestPodMemoryIsNotBelowUsage(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "memory.max", "134217728")
	put(t, pod, "memory.current", "4096")
	more := on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, 1<<28)
	})
	n := newNode(t, []plugin.Member{more}, withCgroups(fs))
	config, c := podWithoutOverhead(), createRequest()
	c.Config.Linux.Resources.MemoryLimitInBytes = 134217728
	n.runPodWith(config, c)
	n.begin()
	for _, step := range []struct{ used, want string }{{"4096", "34359738368"}, {"200003584", "200003584"}, {"150003712", "150003712"}, {"4096", "134217728"}} {
		put(t, pod, "memory.current", step.used)
		if step.used != "4096" {
			n.withdraw("10-test")
			n.must(n.queue.Drain(t.Context()))
		}
		n.options.Scan(t.Context())
		if got := content(t, pod, "memory.max"); got != step.want {
			t.Errorf("with %s in use memory.max is %s, want %s", step.used, got, step.want)
		}
	}
}

// TestUndoOfMemoryIsNotBelowUsage ends a plugin's limits of a container while that uses more than kubelet's:
// by the field, and by the file. They come back once it uses less.
func TestUndoOfMemoryIsNotBelowUsage(t *testing.T) {
	const kubelet, wanted = 134217728, 1 << 29
	for name, set := range map[string]function{
		"field": func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, wanted)
		},
		"file": write(abi.Container, "memory.max", fmt.Sprint(wanted)),
	} {
		t.Run(name, func(t *testing.T) {
			fs, _, dir := scratchGroup(t)
			put(t, dir, "memory.max", fmt.Sprint(kubelet))
			var events observe.Recorder
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, set)}, withCgroups(fs), withObserver(&events))
			c := createRequest()
			c.Config.Linux.Resources.MemoryLimitInBytes = kubelet
			n.runPodWith(podConfig(), c)
			n.backend.hear = func() {
				put(t, dir, "memory.max", fmt.Sprint(n.backend.updates[len(n.backend.updates)-1].GetLinux().GetMemoryLimitInBytes()))
			}
			n.begin()
			if name == "field" {
				put(t, dir, "memory.max", fmt.Sprint(wanted)) // by the runtime
			}
			put(t, dir, "memory.current", "400003072")
			n.withdraw("10-test")
			for range 2 {
				n.must(n.queue.Drain(t.Context()))
				if got, err := strconv.Atoi(content(t, dir, "memory.max")); err != nil || got < 400003072 {
					t.Fatalf("with 400003072 bytes in use memory.max is %d (%v)", got, err)
				}
				n.options.Scan(t.Context())
			}
			if told := observe.All[*observe.FieldsNotReset](events.Take()); name == "field" && (len(told) != 1 || !strings.Contains(told[0].Err.Error(), "400003072")) {
				t.Errorf("told %v", told)
			}
			put(t, dir, "memory.current", "4096")
			n.options.Scan(t.Context())
			n.must(n.queue.Drain(t.Context()))
			if got := content(t, dir, "memory.max"); got != fmt.Sprint(kubelet) {
				t.Errorf("in the end memory.max is %s", got)
			}
		})
	}
}

// TestUndoAfterARestartWithoutPlugins undoes fields by a process whose store follows nothing: what the update must name, too, and what
// is in use, it learns from the runtime and the kernel.
func TestUndoAfterARestartWithoutPlugins(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, 1<<28), adj.SetInt64(abi.Container, abi.Resources+abi.CPUPeriod, 50_000))
	})}, withCgroups(fs))
	n.runPod()
	n.begin()
	put(t, dir, "memory.current", fmt.Sprint(1<<27+4096)) // kubelet's limit is 1<<27
	m := newNode(t, nil, withCgroups(fs), withLedger(n.options.Ledger))
	c, _ := n.store.Container("c1")
	m.describeAs("c1", c.Config)
	m.backend.tellPod("pod1", podConfig())
	m.withdraw("10-test")
	want := []*runtimeapi.UpdateContainerResourcesRequest{{
		ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000},
	}}
	if diff := cmp.Diff(want, m.backend.updates, protocmp.Transform()); diff != "" {
		t.Errorf("updates of a container that uses more memory than kubelet's limit (-want +got):\n%s", diff)
	}
	put(t, dir, "memory.current", "4096")
	m.options.Repair(t.Context(), "a test")
	m.must(m.queue.Drain(t.Context()))
	if !m.options.Ledger.Empty() {
		t.Errorf("in the end there are records of %v", m.options.Ledger.Objects())
	}
}

// TestFieldThatShowsWhatIsInUse ends wishes for a file and a field of a container that uses as much memory as kubelet's limit is:
// memory.max, which was kept at what is in use, is kubelet's once the runtime has written the same.
func TestFieldThatShowsWhatIsInUse(t *testing.T) {
	const kubelet, field = "134217728", "67108864"
	fs, _, dir := scratchGroup(t)
	put(t, dir, "memory.max", kubelet)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.max", "536870912"))}, withCgroups(fs))
	c := createRequest()
	c.Config.Linux.Resources.MemoryLimitInBytes = 134217728
	n.runPodWith(podConfig(), c)
	n.backend.hear = func() {
		put(t, dir, "memory.max", fmt.Sprint(n.backend.updates[len(n.backend.updates)-1].GetLinux().GetMemoryLimitInBytes()))
	}
	n.begin()
	id, limit := enforce.ID{Pod: "u1", Container: "c1"}, enforce.Field("memory_limit_in_bytes")
	has := kubelet
	n.options.Ledger.Record(id).Ask(enforce.Asked{Target: limit, Wish: enforce.Wish{Plugin: "20-next", Hook: abi.Tick, Value: field}, Has: &has})
	n.options.Scan(t.Context())
	put(t, dir, "memory.current", kubelet)
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "memory.max"); got != kubelet {
		t.Fatalf("with %s bytes in use memory.max is %s", kubelet, got)
	}
	n.withdraw("20-next")
	n.must(n.queue.Drain(t.Context()))
	put(t, dir, "memory.current", "4096")
	n.options.Scan(t.Context())
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "memory.max"); got != kubelet {
		t.Errorf("in the end memory.max is %s", got)
	}
}

// TestPodWithoutALimit stays without one, and an unlimited container lifts its pod's.
func TestPodWithoutALimit(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "cpu.max", "max 100000")
	unlimited := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, -1)
	})
	unlimited.ID = "10-doubling"
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities), unlimited}, withCgroups(fs))
	config := podWithoutOverhead()
	n.runPodWith(config, createRequest())
	n.begin()
	n.wantCPU(pod, "max 100000", "before an update")
	put(t, pod, "cpu.max", "50000 100000")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "max 100000", "with an unlimited container")
	n.stop("c1")
	n.wantCPU(pod, "50000 100000", "without it")
}

// TestPodGetsALimit has kubelet limit a pod after its last call for that: the next scan lifts it,
// although it has heard of no write to a container.
func TestPodGetsALimit(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "cpu.max", "max 100000")
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
	config := podWithoutOverhead()
	n.runPodWith(config, createRequest())
	n.begin()
	for range 3 {
		n.options.Scan(t.Context())
	}
	put(t, pod, "cpu.max", "50000 100000")
	n.options.Scan(t.Context())
	n.wantCPU(pod, "max 100000", "after a scan")
}

// TestPodLimitAfterARestart restarts the proxy: the pod's limit stays lifted, and is kubelet's after the
// plugin is removed.
func TestPodLimitAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, pod := raising(t, withLedger(openLedger(t, dir)))
	m := newNode(t, nil, withLedger(openLedger(t, dir)), func(o *intercept.Options) { o.Store, o.Cgroups = n.store, n.options.Cgroups })
	resync(t.Context(), &m.options.Enforcer)
	m.wantCPU(pod, "max 100000", "after the restart")
	m.withdraw("10-doubling")
	m.must(m.queue.Drain(t.Context()))
	m.wantCPU(pod, "50000 100000", "without the plugin")
}

// A proxy that starts while the container runtime is down knows no container, and then one after
// the other: the lifted limits of pods stay, and are repaired.
func TestPodLimitStaysUntilTheStoreIsFilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, pod := raising(t, withLedger(openLedger(t, dir)))
	m := newNode(t, nil, withLedger(openLedger(t, dir)), withCgroups(n.options.Cgroups))
	scan := func(when string) {
		t.Helper()
		put(t, pod, "cpu.max", "50000 100000")
		m.options.Scan(t.Context())
		m.wantCPU(pod, "max 100000", "after a scan "+when)
		put(t, pod, "cpu.max", "50000 100000")
		m.options.Repair(t.Context(), "a reload of systemd")
		m.wantCPU(pod, "max 100000", "after a reload of systemd "+when)
	}
	scan("without a store")
	m.runSandbox("pod1") // as if it were read from the runtime
	scan("with the pod")
	m.options.DropGone() // the runtime has no container
	m.options.Scan(t.Context())
	m.wantCPU(pod, "50000 100000", "without the container")
}

// A file that is written after the container's start lifts its pod's at once.
func TestPodLimitFollowsAFileOfAPostHook(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	write := on(abi.PostStartContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.WriteFile(abi.Container, "cpu.max", "200000 100000")
	})
	n := newNode(t, []plugin.Member{write}, withCgroups(fs))
	config := podWithoutOverhead()
	n.runPodWith(config, createRequest())
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "max 100000", "after the post hook")
}

// A request without a period has the default one of 100 ms.
func TestPodLimitOfAQuotaWithoutPeriod(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
	c := createRequest()
	c.Config.Linux.Resources.CpuPeriod = 0
	config := podWithoutOverhead()
	n.runPodWith(config, c)
	n.wantCPU(pod, "max 100000", "after CreateContainer")
}

// A period of a container without a quota lifts nothing.
func TestPodLimitOfAPeriodAlone(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	period := on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUPeriod, 20_000)
	})
	config := podWithoutOverhead()
	n := newNode(t, []plugin.Member{period}, withCgroups(fs))
	n.runPodWith(config, createRequest())
	n.wantCPU(pod, "max 100000", "with a quota of 50 ms in a period of 20 ms")
	put(t, pod, "cpu.max", "50000 100000")
	c := createRequest()
	c.Config.Linux.Resources.CpuQuota = 0
	n = newNode(t, []plugin.Member{period}, withCgroups(fs))
	n.runPodWith(config, c)
	n.wantCPU(pod, "50000 100000", "with a period and no quota")
}

// kubelet's limit counts for another container while the pod's is lifted: without the grant a plugin gets
// no more than that.
func TestQuotaAboveALiftedPodIsRefused(t *testing.T) {
	n, _ := raising(t)
	m := n.with(withCgroups(n.options.Cgroups), doubling(abi.HookSetOf(abi.PreCreateContainer), abi.DefaultGrant()))
	second := createRequest()
	second.Config.Metadata.Name = "second"
	_, err := m.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	m.must(err)
	if sent := decodeSent[runtimeapi.CreateContainerRequest](m); sent.GetConfig().GetLinux().GetResources().GetCpuQuota() != 50_000 {
		t.Errorf("the runtime gets %v", sent.GetConfig().GetLinux().GetResources())
	}
}
