package suite_test

import (
	"errors"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestSwap has a node whose pods may swap. A container with a plugin's limit of memory has the limit of
// swap that kubelet gives one without, and a plugin's limit of swap holds: after the start, after a
// resize, and until the plugin is removed. kubelet lets no static pod swap, so an API server is needed.
func TestSwap(t *testing.T) {
	if cgroupfs.Version() != 2 {
		t.Skip("kubelet lets pods swap with cgroup version 2 alone")
	}
	if node.RuntimeKind().NoResources {
		t.Skipf("%s does not tell kubelet what a container was given, so kubelet resizes nothing in place", node.RuntimeKind().Name)
	}
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Setter)
	api := node.StartAPIServer(t)
	node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, limitedSwap, "--kubeconfig="+api.Kubeconfig)
	pod := staticPod("swapping")
	pod.Annotations = map[string]string{
		"set.wasmproxy.io/field.field.memory_limit": "50331648", "set.wasmproxy.io/file.file.memory.max": "50331648",
		"set.wasmproxy.io/swap.file.memory.swap.max": "4194304",
	}
	sizes, statuses := map[string]core.ResourceList{}, map[string]core.ResourceList{}
	for _, name := range []string{"plain", "field", "file", "swap"} {
		pod.Spec.Containers = append(pod.Spec.Containers, ticking(name, between("200m", "64Mi")))
		sizes[name], statuses[name] = quantities("400m", "64Mi"), quantities("400m", "64Mi")
	}
	statuses["field"] = quantities("400m", "48Mi")
	groups := runPod(t, api, pod)
	share, err := cgroupfs.Read(groups["plain"], "memory.swap.max")
	if err != nil || share == "0" || share == "max" || share == "4194304" {
		t.Fatalf("memory.swap.max of kubelet is %q, which is no share of the node's swap (%v)", share, err)
	}
	if err := checkSwap(groups, "20000", share, "50331648", "4194304"); err != nil {
		t.Errorf("after the start: %v", err)
	}
	patchLimits(t, api, pod, sizes)
	awaitResized(t, api, pod, statuses)
	time.Sleep(quiet)
	if err := checkSwap(groups, "40000", share, "50331648", "4194304"); err != nil {
		t.Errorf("after a resize of CPU: %v", err)
	}
	proxy.Remove(t, node.Setter)
	node.Eventually(t, time.Minute, "the limits are kubelet's again", func() error {
		return checkSwap(groups, "40000", share, "67108864", share)
	})
	expectNoFailures(t, proxy)
}

// checkSwap compares the files of the containers. share is kubelet's limit of swap; the other limits
// are those that the plugin sets.
func checkSwap(groups map[string]string, quota, share, memory, swap string) error {
	var errs []error
	for name, want := range map[string][2]string{
		"plain": {"67108864", share}, "field": {memory, share}, "file": {memory, share}, "swap": {"67108864", swap},
	} {
		group := groups[name]
		errs = append(errs, cgroupfs.Check(group, "cpu/cpu.cfs_quota_us", quota),
			cgroupfs.Check(group, "memory.max", want[0]), cgroupfs.Check(group, "memory.swap.max", want[1]))
	}
	return errors.Join(errs...)
}

// limitedSwap has kubelet give burstable pods a share of the node's swap.
func limitedSwap(c *kubeletconfig.KubeletConfiguration) {
	c.MemorySwap.SwapBehavior = "LimitedSwap"
}
