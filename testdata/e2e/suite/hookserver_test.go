package suite_test

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestRemoteAndWasm has a hook server and a wasm plugin in one chain: the server
// gives pods the annotation that the plugin acts upon, and their containers CPU
// shares; the kernel holds both. While the server is killed pods run on without
// it, new ones too; when it is back it counts again. In a bypass pods start though the server is
// gone and its policy is Fail, and the kernel has kubelet's values again.
func TestRemoteAndWasm(t *testing.T) {
	node.StartRuntime(t)
	server := node.StartHookServer(t)
	proxy := node.StartProxy(t, node.QoS)
	server.Register(t, proxy, "05-koordlet.json", "Ignore", "PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources")
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)

	first := overlaid("first")
	kubelet.Apply(t, first)
	kubelet.AwaitReady(t, first)
	expectOverlay(t, first, "20000", "300")
	stop := watchReady(t, kubelet, first)

	server.Kill()
	alone := overlaid("alone")
	kubelet.Apply(t, alone)
	kubelet.AwaitReady(t, alone)
	expectOverlay(t, alone, "0", "256")

	server.Start(t)
	server.AwaitConnection(t)
	time.Sleep(node.Slowly(2 * time.Second)) // within which it is used again
	again := overlaid("again")
	kubelet.Apply(t, again)
	kubelet.AwaitReady(t, again)
	expectOverlay(t, again, "20000", "300")

	server.Kill()
	server.Register(t, proxy, "05-koordlet.json", "Fail", "PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources")
	proxy.Bypass(t)
	bypassing := overlaid("bypassing")
	kubelet.Apply(t, bypassing)
	kubelet.AwaitReady(t, bypassing)
	expectOverlay(t, bypassing, "0", "256")
	node.Eventually(t, time.Minute, "the values of plugins are undone", func() error {
		group := cgroups(t, again)["main"]
		for file, want := range map[string]string{"cpu/cpu.cfs_burst_us": "0", "cpu/cpu.shares": "256"} {
			if err := cgroupfs.Check(group, file, want); err != nil {
				return err
			}
		}
		return nil
	})

	stop()
	served := proxy.Stop(t)
	for _, hook := range []string{"PreRunPodSandbox", "PreCreateContainer"} {
		if served.HookFailures[hook] != 1 {
			t.Errorf("%s failed %d times, want once, while the server was away", hook, served.HookFailures[hook])
		}
	}
}

// overlaid is a pod that the hook server changes.
func overlaid(name string) *core.Pod {
	pod := staticPod(name, ticking("main", limits("250m", "64Mi")))
	pod.Annotations = map[string]string{"overlay": `{"Annotations": {"qos.wasmproxy.io/cpu-burst": "20000"}, "Shares": 300}`}
	return pod
}

func expectOverlay(t *testing.T, pod *core.Pod, burst, shares string) {
	t.Helper()
	expectFile(t, pod, "cpu/cpu.cfs_burst_us", burst)
	expectFile(t, pod, "cpu/cpu.shares", shares)
}

// TestKoordlet runs koordlet's own hook server, and a wasm plugin beside it. A
// pod that Koordinator's scheduler gave CPU 1 has it, without a quota; one that
// runs on what others leave has the resources that Koordinator knows of and
// kubelet does not, and the burst that the plugin allows it on top of them.
func TestKoordlet(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS)
	node.StartKoordlet(t, proxy)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	pinned := koordPod("pinned", "LSR", limits("500m", "64Mi"), map[string]string{"scheduling.koordinator.sh/resource-status": `{"cpuset": "1"}`})
	batch := koordPod("batch", "BE", core.ResourceRequirements{}, map[string]string{
		"node.koordinator.sh/extended-resource-spec": `{"containers": {"main": {
			"requests": {"kubernetes.io/batch-cpu": "250"}, "limits": {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "100Mi"}}}}`,
		"qos.wasmproxy.io/cpu-burst": "20000",
	})
	for _, pod := range []*core.Pod{pinned, batch} {
		kubelet.Apply(t, pod)
		kubelet.AwaitReady(t, pod)
	}
	expectFile(t, pinned, "cpuset/cpuset.cpus", "1")
	expectFile(t, pinned, "cpu/cpu.cfs_quota_us", "-1")
	expectFile(t, batch, "cpu/cpu.shares", "256")
	expectFile(t, batch, "cpu/cpu.cfs_quota_us", "50000")
	expectFile(t, batch, "memory/memory.limit_in_bytes", "104857600")
	expectFile(t, batch, "cpu/cpu.cfs_burst_us", "20000")
	expectNoFailures(t, proxy)
}

// koordPod is a pod of one of Koordinator's QoS classes, with what its scheduler noted.
func koordPod(name, qos string, resources core.ResourceRequirements, annotations map[string]string) *core.Pod {
	pod := staticPod(name, ticking("main", resources))
	pod.Labels = map[string]string{"koordinator.sh/qosClass": qos}
	pod.Annotations = annotations
	return pod
}
