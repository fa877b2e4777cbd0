package intercept_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
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
	config := podConfig()
	config.Linux.Overhead = nil
	n.runPodWith(config, createRequest())
	if got := content(t, pod, "cpu.max"); got != "100000 100000" {
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

// TestPodLimitFollowsItsContainers has the pod's limit end with what needs it.
func TestPodLimitFollowsItsContainers(t *testing.T) {
	for name, end := range map[string]func(*node){
		"the container stops": func(n *node) {
			_, err := n.call(n.t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
			n.must(err)
		},
		"the container is removed": func(n *node) {
			_, err := n.call(n.t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
			n.must(err)
		},
		"kubelet resizes it, and the plugin does not ask again": func(n *node) {
			n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 40_000, CpuPeriod: 100_000}))
		},
		"the plugin is removed": func(n *node) {
			intercept.Withdraw(n.t.Context(), n.options, removed("10-doubling"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, pod := raising(t)
			n.backend.hear = func() { n.wantCPU(pod, "100000 100000", "until the container has its quota") }
			end(n)
			n.must(n.queue.Drain(t.Context()))
			n.wantCPU(pod, "50000 100000", "in the end")
		})
	}
}

// TestPodLimitOfKubelet has kubelet write the pod's limit while a plugin's is in it: what plugins
// add stays, and kubelet's new value comes back in the end.
func TestPodLimitOfKubelet(t *testing.T) {
	n, pod := raising(t)
	put(t, pod, "cpu.max", "80000 100000")
	intercept.Scan(t.Context(), n.options)
	n.wantCPU(pod, "130000 100000", "after kubelet's write")
	intercept.Scan(t.Context(), n.options)
	n.wantCPU(pod, "130000 100000", "after another scan")
	intercept.Withdraw(t.Context(), n.options, removed("10-doubling"))
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "80000 100000", "without the plugin")
}

// TestPodLimitOfTwoContainers sums what plugins add, and counts no container whose quota is
// kubelet's.
func TestPodLimitOfTwoContainers(t *testing.T) {
	n, pod := raising(t)
	put(t, pod, "cpu.max", "90000 100000") // of both
	second := createRequest()
	second.Config.Metadata.Name, second.Config.Linux.Resources.CpuQuota = "second", 40_000
	_, err := n.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.wantCPU(pod, "180000 100000", "with two containers")
	plain := n.with(withCgroups(n.options.Cgroups))
	_, err = plain.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c3"})
	n.must(err)
	n.wantCPU(pod, "180000 100000", "with a third")
}

// TestPodLimitAroundAnUpdate has the pod's limit raised before the container's, and taken back if
// the runtime refuses the update.
func TestPodLimitAroundAnUpdate(t *testing.T) {
	n, pod := raising(t)
	m := n.with(withCgroups(n.options.Cgroups), doubling(abi.HookSetOf(abi.PreUpdateContainerResources), abi.AllCapabilities))
	resize := &runtimeapi.LinuxContainerResources{CpuQuota: 60_000, CpuPeriod: 100_000}
	m.updating = func() { m.wantCPU(pod, "120000 100000", "during the update") }
	m.fails = errors.New("refused")
	if err := m.updateC1(resize); err == nil {
		t.Fatal("the update is accepted")
	}
	m.wantCPU(pod, "100000 100000", "after the refusal")
	m.fails = nil
	m.must(m.updateC1(resize))
	m.wantCPU(pod, "120000 100000", "with kubelet's new quota of the container")
}

// TestPodMemoryIsNotBelowUsage ends a raised memory limit while the pod uses more than kubelet's.
func TestPodMemoryIsNotBelowUsage(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "memory.max", "134217728")
	put(t, pod, "memory.current", "4096")
	more := on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, 1<<28)
	})
	n := newNode(t, []plugin.Member{more}, withCgroups(fs))
	n.runPod()
	n.begin()
	for _, step := range []struct{ used, want string }{{"4096", "268435456"}, {"200003584", "200003584"}, {"150003712", "150003712"}, {"4096", "134217728"}} {
		put(t, pod, "memory.current", step.used)
		if step.used != "4096" {
			intercept.Withdraw(t.Context(), n.options, removed("10-test"))
			n.must(n.queue.Drain(t.Context()))
		}
		intercept.Scan(t.Context(), n.options)
		if got := content(t, pod, "memory.max"); got != step.want {
			t.Errorf("with %s in use memory.max is %s, want %s", step.used, got, step.want)
		}
	}
}

// TestPodWithoutALimit stays without one, and an unlimited container takes the limit from its pod.
func TestPodWithoutALimit(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "cpu.max", "max 100000")
	unlimited := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, -1)
	})
	unlimited.ID = "10-doubling"
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities), unlimited}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.wantCPU(pod, "max 100000", "before an update")
	put(t, pod, "cpu.max", "50000 100000")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	n.wantCPU(pod, "max 100000", "with an unlimited container")
}

// TestPodGetsALimit has kubelet limit a pod after its last call for that: the next scan adds what
// plugins do, although it has heard of no write to a container.
func TestPodGetsALimit(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	put(t, pod, "cpu.max", "max 100000")
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
	n.runPod()
	n.begin()
	for range 3 {
		intercept.Scan(t.Context(), n.options)
	}
	put(t, pod, "cpu.max", "50000 100000")
	intercept.Scan(t.Context(), n.options)
	n.wantCPU(pod, "100000 100000", "after a scan")
}

// TestPodLimitAfterARestart restarts the proxy: the pod's limit holds, and is kubelet's after the
// plugin is removed.
func TestPodLimitAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, pod := raising(t, withLedger(openLedger(t, dir)))
	m := newNode(t, nil, withLedger(openLedger(t, dir)), func(o *intercept.Options) { o.Store, o.Cgroups = n.store, n.options.Cgroups })
	intercept.Settle(t.Context(), m.options)
	m.wantCPU(pod, "100000 100000", "after the restart")
	intercept.Withdraw(t.Context(), m.options, removed("10-doubling"))
	m.must(m.queue.Drain(t.Context()))
	m.wantCPU(pod, "50000 100000", "without the plugin")
}

// A proxy that starts while the container runtime is down knows no container, and then one after
// the other: the raised limits of pods stay, and are repaired.
func TestPodLimitStaysUntilTheStoreIsFilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, pod := raising(t, withLedger(openLedger(t, dir)))
	second := createRequest()
	second.Config.Metadata.Name, second.Config.Linux.Resources.CpuQuota = "second", 40_000
	_, err := n.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.wantCPU(pod, "140000 100000", "with two containers")
	m := newNode(t, nil, withLedger(openLedger(t, dir)), withCgroups(n.options.Cgroups))
	scan := func(when string) {
		t.Helper()
		put(t, pod, "cpu.max", "50000 100000")
		intercept.Scan(t.Context(), m.options)
		m.wantCPU(pod, "140000 100000", "after a scan "+when)
		put(t, pod, "cpu.max", "50000 100000")
		intercept.AfterReload(t.Context(), m.options)
		m.wantCPU(pod, "140000 100000", "after a reload of systemd "+when)
	}
	scan("without a store")
	m.runSandbox("pod1") // as if it were read from the runtime
	scan("with the pod")
	_, err = m.call(t.Context(), "CreateContainer", second, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	m.must(err)
	scan("with one of two containers")
	intercept.DropGone(m.options) // the runtime has no other
	intercept.Scan(t.Context(), m.options)
	m.wantCPU(pod, "90000 100000", "without the first container")
}

// A file that is written after the container's start raises its pod at once.
func TestPodLimitFollowsAFileOfAPostHook(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	write := on(abi.PostStartContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.WriteFile(abi.Container, "cpu.max", "200000 100000")
	})
	n := newNode(t, []plugin.Member{write}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "200000 100000", "after the post hook")
}

// A request without a period has the default one of 100 ms.
func TestPodLimitOfAQuotaWithoutPeriod(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig(), RuntimeHandler: "runc"}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	c := createRequest()
	c.Config.Linux.Resources.CpuPeriod = 0
	_, err = n.call(t.Context(), "CreateContainer", c, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	n.wantCPU(pod, "100000 100000", "after CreateContainer")
}

// A period of a container without a quota raises nothing.
func TestPodLimitOfAPeriodAlone(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	period := on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUPeriod, 20_000)
	})
	n := newNode(t, []plugin.Member{period}, withCgroups(fs))
	n.runPod()
	n.wantCPU(pod, "250000 100000", "with a quota of 50 ms in a period of 20 ms")
	put(t, pod, "cpu.max", "50000 100000")
	c := createRequest()
	c.Config.Linux.Resources.CpuQuota = 0
	n = newNode(t, []plugin.Member{period}, withCgroups(fs))
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	_, err = n.call(t.Context(), "CreateContainer", c, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	n.wantCPU(pod, "50000 100000", "with a period and no quota")
}
