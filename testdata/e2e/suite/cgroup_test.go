package suite_test

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestPluginChangesCgroup is the product in one test: the pod's annotation and
// the qos plugin, and the kernel holds the value. Without the plugin it does not.
func TestPluginChangesCgroup(t *testing.T) {
	pod := staticPod("bursting", ticking("main", limits("250m", "64Mi")))
	pod.Annotations = map[string]string{"qos.wasmproxy.io/cpu-burst": "20000"}
	idle := staticPod("idle", ticking("main", requests("100m", "16Mi")))
	idle.Annotations = map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}
	for _, test := range []struct {
		name                string
		plugins             []node.Plugin
		wantBurst, wantIdle string
	}{
		{"with the plugin", []node.Plugin{node.QoS}, "20000", "1"},
		{"without", nil, "0", "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node.StartRuntime(t)
			proxy := node.StartProxy(t, test.plugins...)
			kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
			for _, p := range []*core.Pod{pod, idle} {
				kubelet.Apply(t, p)
				kubelet.AwaitReady(t, p)
			}
			expectFile(t, pod, "cpu/cpu.cfs_burst_us", test.wantBurst)
			expectFile(t, idle, "cpu/cpu.idle", test.wantIdle)
			expectNoFailures(t, proxy)
		})
	}
}

// TestPodWithoutAnnotation runs the same pods with and without wasmproxy and its
// plugins, and compares all that the kernel says about their cgroups.
func TestPodWithoutAnnotation(t *testing.T) {
	pods := []*core.Pod{
		staticPod("guaranteed", ticking("main", limits("250m", "64Mi"))),
		staticPod("burstable", ticking("main", requests("100m", "32Mi")), ticking("side", limits("500m", "64Mi"))),
		staticPod("besteffort", ticking("main", core.ResourceRequirements{})),
	}
	settings := func(t *testing.T, endpoint string) map[string]string {
		kubelet := node.StartKubelet(t, endpoint, nil)
		for _, pod := range pods {
			kubelet.Apply(t, pod)
		}
		all := map[string]string{}
		for _, pod := range pods {
			kubelet.AwaitReady(t, pod)
			addSettings(t, all, pod)
		}
		return all
	}
	var direct, proxied map[string]string
	ok := t.Run("direct", func(t *testing.T) {
		node.StartRuntime(t)
		direct = settings(t, node.RuntimeKind().Endpoint)
	})
	ok = ok && t.Run("through wasmproxy", func(t *testing.T) {
		node.StartRuntime(t)
		proxy := node.StartProxy(t, node.QoS, node.Noop, node.Annotate, node.Witness)
		proxied = settings(t, node.RuntimeKind().ProxyEndpoint)
		if served := expectNoFailures(t, proxy); served.Hooks["PreCreateContainer"] == 0 {
			t.Error("no plugin was asked")
		}
	})
	if !ok {
		return
	}
	if diff := cmp.Diff(direct, proxied); diff != "" {
		t.Errorf("cgroup files (-direct +through wasmproxy):\n%s", diff)
	}
	t.Logf("compared %d cgroup files", len(direct))
}

// cgroups returns the cgroups of a pod by role: the pod's, its sandbox's, and its containers' by name.
// CRI-O runs nothing for a sandbox, and with systemd it makes no cgroup for that.
func cgroups(t *testing.T, pod *core.Pod) map[string]string {
	t.Helper()
	client := node.DialCRI(t, node.RuntimeKind().Endpoint)
	of := map[string]string{"io.kubernetes.pod.name": node.PodName(pod)}
	sandboxes, err := client.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: of}})
	if err != nil || len(sandboxes.Items) != 1 {
		t.Fatalf("pod %s has %d sandboxes, want 1: %v", pod.Name, len(sandboxes.GetItems()), err)
	}
	containers, err := client.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		LabelSelector: of, State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil || len(containers.Containers) == 0 {
		t.Fatalf("pod %s has %d containers: %v", pod.Name, len(containers.GetContainers()), err)
	}
	groups := map[string]string{}
	for _, c := range containers.Containers {
		groups[c.Metadata.Name] = cgroupfs.Inner(find(t, c.Id))
		groups["pod"] = path.Dir(find(t, c.Id))
	}
	sandbox, err := cgroupfs.Find(node.RuntimeKind().CgroupName(sandboxes.Items[0].Id))
	if err == nil {
		groups["sandbox"] = sandbox
	} else if node.RuntimeKind().Name != "cri-o" {
		t.Error(err)
	}
	return groups
}

// find returns the cgroup of a container or sandbox.
func find(t *testing.T, id string) string {
	t.Helper()
	group, err := cgroupfs.Find(node.RuntimeKind().CgroupName(id))
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func addSettings(t *testing.T, all map[string]string, pod *core.Pod) {
	t.Helper()
	for role, group := range cgroups(t, pod) {
		settings, err := cgroupfs.Settings(group)
		if err != nil {
			t.Fatal(err)
		}
		for file, value := range settings {
			all[path.Join(pod.Name, role, file)] = value
		}
	}
}

// expectFile checks a cgroup file of the container main.
func expectFile(t *testing.T, pod *core.Pod, file, want string) {
	t.Helper()
	expectGroupFile(t, cgroups(t, pod)["main"], file, want)
}

func expectGroupFile(t *testing.T, group, file, want string) {
	t.Helper()
	if err := cgroupfs.Check(group, file, want); err != nil {
		t.Error(err)
	}
}

// expectNoFailures stops wasmproxy and demands that no hook failed.
func expectNoFailures(t *testing.T, proxy *node.Proxy) node.Served {
	t.Helper()
	served := proxy.Stop(t)
	if len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
	return served
}
