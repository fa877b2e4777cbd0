package suite_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	nodeapi "k8s.io/api/node/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// overheadAnnotation is what the overhead plugin notes of a pod of the handler
// sandboxed whose sandbox costs a quarter of a CPU and 120 MiB.
const (
	overheadAnnotation = "overhead.wasmproxy.io/of"
	overhead           = "sandboxed: quota 25000, shares 256, memory 125829120"
)

// TestRuntimeClass has pods of two RuntimeClasses, and of none, come from an API
// server. A plugin that is for one runtime handler touches the pods of that class
// only, and reads the handler and the overhead, which kubelet adds to the pod's cgroup.
func TestRuntimeClass(t *testing.T) {
	needRuntimeHandlers(t)
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Overhead)
	api := node.StartAPIServer(t)
	testDocumentedRuntimeClass(t, api)
	for _, class := range []nodeapi.RuntimeClass{
		{ObjectMeta: meta.ObjectMeta{Name: "plain"}, Handler: "runc"},
		{ObjectMeta: meta.ObjectMeta{Name: "boxed"}, Handler: "sandboxed", Overhead: &nodeapi.Overhead{PodFixed: quantities("250m", "120Mi")}},
	} {
		if _, err := api.NodeV1().RuntimeClasses().Create(t.Context(), &class, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil, "--kubeconfig="+api.Kubeconfig)
	handlers := map[string]string{"no-class": "", "plain": "runc", "boxed": "sandboxed"}
	for name := range handlers {
		pod := staticPod(name, ticking("main", limits("250m", "64Mi")))
		pod.Spec.NodeName = node.NodeName
		if name != "no-class" {
			pod.Spec.RuntimeClassName = ptr.To(name)
		}
		if _, err := api.CoreV1().Pods("default").Create(t.Context(), pod, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, handler := range handlers {
		limit := "67108864"
		if pod := api.AwaitReady(t, name); handler == "sandboxed" {
			limit = "192937984" // with the overhead
			expectQuantity(t, pod.Spec.Overhead, core.ResourceMemory, "120Mi")
		}
		expectGroupFile(t, filepath.Dir(find(t, expectTouched(t, name, handler))), "memory/memory.limit_in_bytes", limit)
	}
	expectOnlyCalledFor(t, proxy, "boxed")
	expectNodeLabels(t, proxy)
	expectNoFailures(t, proxy)
}

func needRuntimeHandlers(t *testing.T) {
	t.Helper()
	if kind := node.RuntimeKind(); kind.NoRuntimeHandlers {
		t.Skipf("%s runs pods of one runtime handler alone", kind.Name)
	}
}

func expectQuantity(t *testing.T, list core.ResourceList, resource core.ResourceName, want string) {
	t.Helper()
	if q := list[resource]; q.String() != want {
		t.Errorf("the pod's overhead is %v, want %s of %s", list, want, resource)
	}
}

// TestRuntimeHandler is the same with crictl in the place of API server and kubelet.
func TestRuntimeHandler(t *testing.T) {
	needRuntimeHandlers(t)
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Overhead)
	handlers := map[string]string{"no-handler": "", "plain": "runc", "boxed": "sandboxed"}
	crictl(t, "pull", image.Busybox)
	for name, handler := range handlers {
		runWithCrictl(t, name, handler)
		expectTouched(t, name, handler)
	}
	expectOnlyCalledFor(t, proxy, "boxed")
	expectNoFailures(t, proxy)
}

// runWithCrictl runs a pod that has the same overhead whatever its handler.
func runWithCrictl(t *testing.T, name, handler string) {
	t.Helper()
	dir := t.TempDir()
	host := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}
	pod := writeJSON(t, dir, "pod.json", &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name},
		Labels:   map[string]string{"io.kubernetes.pod.name": name},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    node.PodGroup(name),
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: host},
			Overhead:        &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 25000, CpuShares: 256, MemoryLimitInBytes: 125829120},
		},
	})
	container := writeJSON(t, dir, "container.json", &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"}, Labels: map[string]string{"io.kubernetes.pod.name": name},
		Image: &cri.ImageSpec{Image: image.Busybox}, Command: node.Sleep,
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: host}},
	})
	id := crictl(t, "runp", "--runtime="+handler, pod)
	crictl(t, "start", crictl(t, "create", id, container, pod))
}

func writeJSON(t *testing.T, dir, name string, v any) (file string) {
	t.Helper()
	file = filepath.Join(dir, name)
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// crictl runs crictl on wasmproxy, and returns what it prints without the last newline.
func crictl(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"--config=/dev/null", "--runtime-endpoint=" + node.RuntimeKind().ProxyEndpoint, "--timeout=" + node.Slowly(10*time.Second).String()}, args...)
	cmd := exec.CommandContext(t.Context(), isolation.Current().Program("crictl"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("crictl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// expectTouched demands that the runtime has the pod with this handler, and its
// sandbox and container with what the plugin notes if the handler is its own. It
// returns the container's id.
func expectTouched(t *testing.T, name, handler string) (container string) {
	t.Helper()
	client := node.DialCRI(t, node.RuntimeKind().Endpoint)
	of := map[string]string{"io.kubernetes.pod.name": name}
	sandboxes, err := client.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: of}})
	if err != nil || len(sandboxes.Items) != 1 {
		t.Fatalf("pod %s has %d sandboxes: %v", name, len(sandboxes.GetItems()), err)
	}
	containers, err := client.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: of}})
	if err != nil || len(containers.Containers) != 1 {
		t.Fatalf("pod %s has %d containers: %v", name, len(containers.GetContainers()), err)
	}
	want := ""
	if handler == "sandboxed" {
		want = overhead
	}
	sandbox, c := sandboxes.Items[0], containers.Containers[0]
	if !node.RuntimeKind().NoHandlerInList && sandbox.RuntimeHandler != handler {
		t.Errorf("pod %s has the runtime handler %q, want %q", name, sandbox.RuntimeHandler, handler)
	}
	for what, annotations := range map[string]map[string]string{"sandbox": sandbox.Annotations, "container": c.Annotations} {
		if got := annotations[overheadAnnotation]; got != want {
			t.Errorf("the plugin noted %q on the %s of %s, want %q", got, what, name, want)
		}
	}
	return c.Id
}

// expectOnlyCalledFor demands that the overhead plugin was called for one pod, twice, and not woken for another.
func expectOnlyCalledFor(t *testing.T, proxy *node.Proxy, pod string) {
	t.Helper()
	calls := map[string]int{}
	for _, r := range records(t, proxy, "plugin called", "50-overhead") {
		if r.Hook != "" { // loading has none
			calls[r.Namespace+"/"+r.Pod+" "+r.Hook]++
		}
	}
	want := map[string]int{"default/" + pod + " PreRunPodSandbox": 1, "default/" + pod + " PreCreateContainer": 1}
	if !maps.Equal(calls, want) {
		t.Errorf("the plugin was called for %v, want %v", slices.Sorted(maps.Keys(calls)), slices.Sorted(maps.Keys(want)))
	}
}
