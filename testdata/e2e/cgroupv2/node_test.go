// Package cgroupv2_test is `make e2e-v2`: a real kubelet with the systemd driver runs
// pods through wasmproxy on a kernel with cgroup v2 alone, in a virtual machine.
package cgroupv2_test

import (
	"os"
	"testing"

	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
)

// setter sets what a pod's annotations ask for.
var setter = guest.Plugin{Name: "10-setter", Dir: "testdata/plugins/setter"}

// TestNode boots one guest for all, because that takes the longest. Its parts build
// on each other, so the first that fails ends it. They have one pod, whose cgroup
// files the plugin sets.
func TestNode(t *testing.T) {
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pod := withSettings(readPod(t), settings)
	n := guest.StartNode(t, builder, setter, memoryQoS)
	for _, part := range []struct {
		name string
		test func(*testing.T, *guest.Node, *core.Pod)
	}{
		{"boot", testBoot},
		{"pod", testPod},
		{"settings", testSettings},
		{"update", testUpdate},
		{"daemon-reload", testDaemonReload},
		{"kill", testKill},
		{"memory-qos", testMemoryQoS},
		{"removal", testRemoval},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, n, pod) }) {
			return
		}
	}
}

// testBoot makes sure that the guest is the node that it is meant to be.
func testBoot(t *testing.T, n *guest.Node, _ *core.Pod) {
	for command, want := range map[string]string{
		"stat --file-system --format=%T /sys/fs/cgroup": "cgroup2fs",
		"cat /proc/1/comm": "systemd",
		"systemctl is-active wasmproxy containerd dbus": "active\nactive\nactive",
	} {
		if got := n.Run(t, command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
	config, err := n.CRI(t, guest.ProxySocket).RuntimeConfig(t.Context(), &cri.RuntimeConfigRequest{})
	if driver := config.GetLinux().GetCgroupDriver(); err != nil || driver != cri.CgroupDriver_SYSTEMD {
		t.Errorf("the runtime's cgroup driver is %v, want systemd (%v)", driver, err)
	}
}

// testPod waits for a pod with an exec probe: kubelet has run the probe through wasmproxy.
func testPod(t *testing.T, n *guest.Node, pod *core.Pod) {
	n.Apply(t, pod)
	ready := n.AwaitReady(t, pod)
	if ready.Status.QOSClass != core.PodQOSBurstable || ready.Status.Phase != core.PodRunning {
		t.Errorf("the pod is %s and %s, want Burstable and Running", ready.Status.QOSClass, ready.Status.Phase)
	}
}

// testSettings makes sure that the plugin's values are in the kernel, below those that kubelet gave the pod.
func testSettings(t *testing.T, n *guest.Node, pod *core.Pod) {
	cgroup(t, n, pod).Parent().Expect(t, map[string]string{"cpu.max": "50000 100000", "memory.max": "67108864"})
	expectSettings(t, n, pod, settings)
}

// testUpdate updates the container as kubelet does when it resizes a pod: what the
// plugin does not ask for is as the update says, and all else as the plugin asks again.
func testUpdate(t *testing.T, n *guest.Node, pod *core.Pod) {
	client, id, group := n.CRI(t, guest.ProxySocket), containerID(t, n, pod), cgroup(t, n, pod)
	for _, update := range []*cri.LinuxContainerResources{
		{CpuPeriod: 100000, CpuQuota: 40000, CpuShares: 512, MemoryLimitInBytes: 60 << 20, CpusetCpus: "1"},
		{CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 102, MemoryLimitInBytes: 64 << 20, CpusetCpus: "0-1"},
	} {
		_, err := client.UpdateContainerResources(t.Context(), &cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: update})
		if err != nil {
			t.Fatal(err)
		}
		group.Expect(t, map[string]string{"cpuset.cpus": update.CpusetCpus})
		expectSettings(t, n, pod, settings)
	}
}

// testDaemonReload makes systemd apply the properties of all units again.
func testDaemonReload(t *testing.T, n *guest.Node, pod *core.Pod) {
	n.Run(t, "systemctl daemon-reload")
	expectSettings(t, n, pod, settings)
}

// testKill kills wasmproxy. The pod keeps its values and its container, and the next
// wasmproxy goes on where the last one ended.
func testKill(t *testing.T, n *guest.Node, pod *core.Pod) {
	before := containerID(t, n, pod)
	n.KillProxy(t)
	expectSettings(t, n, pod, settings)
	testUpdate(t, n, pod)
	if now := containerID(t, n, pod); now != before {
		t.Errorf("the pod's container is %s, and was %s before wasmproxy was killed", now, before)
	}
}

// testRemoval takes the pod away. Its cgroup goes with it.
func testRemoval(t *testing.T, n *guest.Node, pod *core.Pod) {
	group := cgroup(t, n, pod).Parent()
	n.Remove(t, pod)
	n.Await(t, "test ! -e "+group.Dir())
}

// readPod reads the manifest of the tests' pod.
func readPod(t *testing.T) *core.Pod {
	t.Helper()
	data, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := &core.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatalf("reading the pod's manifest: %v", err)
	}
	return pod
}

func containerID(t *testing.T, n *guest.Node, pod *core.Pod) string {
	t.Helper()
	return guest.ContainerID(t, n.AwaitReady(t, pod), "main")
}

// cgroup returns the cgroup of the pod's container.
func cgroup(t *testing.T, n *guest.Node, pod *core.Pod) guest.Cgroup {
	t.Helper()
	return n.Cgroup(t, containerID(t, n, pod))
}
