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
	for policy, configure := range map[string]func(*kubeletconfig.KubeletConfiguration){"none": nil, "static": staticCPUManager} {
		t.Run(policy, func(t *testing.T) {
			node.StartRuntime(t)
			proxy := node.StartProxy(t, node.QoS, node.Witness)
			api := node.StartAPIServer(t)
			node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, configure, "--kubeconfig="+api.Kubeconfig)
			pod := staticPod("resized", ticking("main", between("200m", "64Mi")))
			pod.Annotations, pod.Spec.NodeName = map[string]string{"qos.wasmproxy.io/cpu-burst": "20000"}, node.NodeName
			if _, err := api.CoreV1().Pods("default").Create(t.Context(), pod, meta.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, id, _ := strings.Cut(api.AwaitReady(t, pod.Name).Status.ContainerStatuses[0].ContainerID, "://")
			group := find(t, id)
			time.Sleep(quiet) // the CPU manager's first update
			for _, size := range []struct{ cpu, memory, quota, bytes string }{
				{"600m", "128Mi", "60000", "134217728"}, {"200m", "64Mi", "20000", "67108864"},
			} {
				before := updates(t, proxy, pod)
				resize(t, api, pod, size.cpu, size.memory)
				time.Sleep(quiet)
				expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", size.quota)
				expectGroupFile(t, group, "memory/memory.limit_in_bytes", size.bytes)
				expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "20000")
				if n := updates(t, proxy, pod) - before; n != 2 {
					t.Errorf("the resize to %s took %d updates, want 2", size.cpu, n)
				}
			}
			expectNoFailures(t, proxy)
			if policy == "none" { // one API server is enough
				t.Run("manifests", func(t *testing.T) { testManifests(t, api) })
			}
		})
	}
}

// between is what a burstable container asks for.
func between(cpu, memory string) core.ResourceRequirements {
	return core.ResourceRequirements{Requests: quantities("100m", "32Mi"), Limits: quantities(cpu, memory)}
}

// resize changes the limits of a pod's container, and waits until kubelet reports that as done.
func resize(t *testing.T, api *node.APIServer, pod *core.Pod, cpu, memory string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "main", "resources": between(cpu, memory)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	pods := api.CoreV1().Pods("default")
	if _, err := pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "resize"); err != nil {
		t.Fatal(err)
	}
	want := quantities(cpu, memory)
	node.Eventually(t, time.Minute, "the resize to "+cpu+" is done", func() error {
		now, err := pods.Get(t.Context(), pod.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if (c.Type == core.PodResizePending || c.Type == core.PodResizeInProgress) && c.Status == core.ConditionTrue {
				return fmt.Errorf("%s: %s %s", c.Type, c.Reason, c.Message)
			}
		}
		status := now.Status.ContainerStatuses[0]
		if status.RestartCount != 0 {
			t.Fatal("the container was restarted")
		}
		if r := status.Resources; r == nil || !r.Limits.Cpu().Equal(want["cpu"]) || !r.Limits.Memory().Equal(want["memory"]) {
			return fmt.Errorf("the status has %v", r)
		}
		return nil
	})
}

// updates is how many updates of a pod's container the witness has seen answered.
func updates(t *testing.T, proxy *node.Proxy, pod *core.Pod) (n int) {
	t.Helper()
	proxy.Records(t, "plugin log", func(line []byte) error {
		var r struct{ Text string }
		err := json.Unmarshal(line, &r)
		if r.Text == "updated "+pod.Name+"/main" {
			n++
		}
		return err
	})
	return n
}
