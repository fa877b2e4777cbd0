package suite_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// quiet is how long nothing more is to come after a resize: several periods of the CPU manager,
// and a sync of the pod.
var quiet = node.Slowly(5 * time.Second)

// TestResize resizes a pod in place through an API server, up and down, with a plugin's burst in
// its cgroup: kubelet says that it is done, the kernel has both, and there are no updates but those
// of the resize, one for CPU and one for memory.
func TestResize(t *testing.T) {
	if node.RuntimeKind().NoResources {
		t.Skipf("%s does not tell kubelet what a container was given, so kubelet resizes nothing in place", node.RuntimeKind().Name)
	}
	for policy, configure := range map[string]func(*kubeletconfig.KubeletConfiguration){"none": nil, "static": staticManagers} {
		t.Run(policy, func(t *testing.T) {
			node.StartRuntime(t)
			proxy := node.StartProxy(t, node.QoS, node.Setter, node.Witness)
			api := node.StartAPIServer(t)
			node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, configure, "--kubeconfig="+api.Kubeconfig)
			pod := staticPod("resized", ticking("main", between("200m", "64Mi")))
			pod.Annotations = map[string]string{"qos.wasmproxy.io/cpu-burst": "20000"}
			group := runPod(t, api, pod)["main"]
			time.Sleep(quiet) // the CPU manager's first update
			for _, size := range []struct{ cpu, memory, quota, bytes string }{
				{"600m", "128Mi", "60000", "134217728"}, {"200m", "64Mi", "20000", "67108864"},
			} {
				before := updates(t, proxy, pod, "main")
				resize(t, api, pod, size.cpu, size.memory)
				time.Sleep(quiet)
				expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", size.quota)
				expectGroupFile(t, group, "memory/memory.limit_in_bytes", size.bytes)
				expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "20000")
				if n := updates(t, proxy, pod, "main") - before; n != 2 {
					t.Errorf("the resize to %s took %d updates, want 2", size.cpu, n)
				}
			}
			if policy == "none" { // one API server is enough
				t.Run("scheduler", func(t *testing.T) { testScheduler(t, api) })
				t.Run("beside a plugin's values", func(t *testing.T) { testResizeBesidePluginsValues(t, proxy, api) })
				if cgroupfs.Version() == 2 { // there a pod can be lifted
					t.Run("of a lifted pod", func(t *testing.T) { testResizeOfALiftedPod(t, proxy, api) })
				}
				t.Run("to a plugin's values", func(t *testing.T) { testResizeToPluginsValues(t, proxy, api) })
			} else {
				t.Run("exclusive", func(t *testing.T) { testExclusive(t, proxy, api) })
			}
			expectNoFailures(t, proxy)
			if policy == "none" {
				t.Run("manifests", func(t *testing.T) { testManifests(t, api) })
			}
		})
	}
}

// testResizeToPluginsValues resizes a pod to just what a plugin has set. That is kubelet's from then
// on: it stays when the plugin goes.
func testResizeToPluginsValues(t *testing.T, proxy *node.Proxy, api *node.APIServer) {
	pod := staticPod("equal", ticking("main", between("500m", "128Mi")))
	pod.Annotations = map[string]string{
		"set.wasmproxy.io/main.field.cpu_quota": "30000", "set.wasmproxy.io/main.field.memory_limit": "67108864",
	}
	group := runPod(t, api, pod)["main"]
	expect := func() {
		t.Helper()
		expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", "30000")
		expectGroupFile(t, group, "memory/memory.limit_in_bytes", "67108864")
	}
	expect()
	before := updates(t, proxy, pod, "main")
	resize(t, api, pod, "300m", "64Mi") // done at once by the status, which has the plugin's values
	node.Eventually(t, time.Minute, "kubelet sends the resize", func() error {
		if n := updates(t, proxy, pod, "main") - before; n < 2 {
			return fmt.Errorf("%d of 2 updates have been answered", n)
		}
		return nil
	})
	proxy.Remove(t, node.Setter)
	node.Eventually(t, time.Minute, "nothing of the plugin is left", func() error {
		var report struct{ Pods []json.RawMessage }
		err := proxy.Ask(t.Context(), &report, "explain", pod.Namespace+"/"+pod.Name)
		if left := fmt.Sprintf("%s", report.Pods); err == nil && strings.Contains(left, `"plugin"`) {
			err = fmt.Errorf("wasmproxy explains %s", left)
		}
		return err
	})
	expect()
}

// between is what a burstable container asks for.
func between(cpu, memory string) core.ResourceRequirements {
	return core.ResourceRequirements{Requests: quantities("100m", "32Mi"), Limits: quantities(cpu, memory)}
}

// runPod runs a pod, and returns the cgroups of its containers by name once it is ready.
func runPod(t *testing.T, api *node.APIServer, pod *core.Pod) (groups map[string]string) {
	t.Helper()
	pod.Spec.NodeName = node.NodeName
	if _, err := api.CoreV1().Pods("default").Create(t.Context(), pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	groups = map[string]string{}
	for _, status := range api.AwaitReady(t, pod.Name).Status.ContainerStatuses {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		groups[status.Name] = find(t, id)
	}
	return groups
}

// resize changes the limits of a pod's container, and waits until kubelet reports that as done.
func resize(t *testing.T, api *node.APIServer, pod *core.Pod, cpu, memory string) {
	t.Helper()
	patchLimits(t, api, pod, map[string]core.ResourceList{"main": quantities(cpu, memory)})
	awaitResized(t, api, pod, map[string]core.ResourceList{"main": quantities(cpu, memory)})
}

// patchLimits asks for other limits of a pod's containers.
func patchLimits(t *testing.T, api *node.APIServer, pod *core.Pod, limits map[string]core.ResourceList) {
	t.Helper()
	var containers []any
	for _, c := range pod.Spec.Containers { // the API server refuses another order
		containers = append(containers, map[string]any{"name": c.Name, "resources": map[string]any{"limits": limits[c.Name]}})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": containers}})
	if err != nil {
		t.Fatal(err)
	}
	node.Eventually(t, time.Minute, "the API server takes the resize", func() error { // a slow one exceeds its own time limit
		_, err := api.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "resize")
		return err
	})
}

// awaitResized waits until kubelet reports a resize as done, with these limits of containers.
func awaitResized(t *testing.T, api *node.APIServer, pod *core.Pod, limits map[string]core.ResourceList) {
	t.Helper()
	node.Eventually(t, time.Minute, "the resize of "+pod.Name+" is done", func() error {
		now, err := api.CoreV1().Pods("default").Get(t.Context(), pod.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if (c.Type == core.PodResizePending || c.Type == core.PodResizeInProgress) && c.Status == core.ConditionTrue {
				return fmt.Errorf("%s: %s %s", c.Type, c.Reason, c.Message)
			}
		}
		for _, status := range now.Status.ContainerStatuses {
			if status.RestartCount != 0 {
				t.Fatalf("container %s was restarted", status.Name)
			}
			want, r := limits[status.Name], status.Resources
			if r == nil || !r.Limits.Cpu().Equal(*want.Cpu()) || !r.Limits.Memory().Equal(*want.Memory()) {
				return fmt.Errorf("the status of container %s has %v, want %v", status.Name, r, want)
			}
		}
		return nil
	})
}

// updates is how many updates of a pod's container the witness has seen answered.
func updates(t *testing.T, proxy *node.Proxy, pod *core.Pod, container string) (n int) {
	t.Helper()
	proxy.Records(t, "plugin log", func(line []byte) error {
		var r struct{ Text string }
		err := json.Unmarshal(line, &r)
		if r.Text == "updated "+pod.Name+"/"+container {
			n++
		}
		return err
	})
	return n
}
