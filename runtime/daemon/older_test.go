package daemon_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// bundled is a bundled plugin at work: what its operator and a pod ask for, and a cgroup file of the pod or of its
// container. The runtime's quota is that of the container, in µs.
type bundled struct {
	name, config        string
	labels, annotations map[string]string
	ofPod               bool
	file, before, after string
	quota               int64 // with the plugin's values; 0 for kubelet's
}

// kubelets are the resources of the container as kubelet asks for them.
var kubelets = &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 120_000, CpusetCpus: "0-3", MemoryLimitInBytes: 2 << 20, OomScoreAdj: 999}

var settingValues = []bundled{
	{name: "qos", file: "cpu.idle", before: "0", after: "1", annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}},
	{name: "cpu-normalization", config: `{"ratio": "1.2"}`, file: "cpu.max", before: "120000 100000", after: "100000"},
	{
		name: "koordlet", config: `{"groupIdentity": true}`, ofPod: true, file: "cpu.bvt_warp_ns", before: "0", after: "2", quota: -1,
		labels:      map[string]string{"koordinator.sh/qosClass": "LSR"},
		annotations: map[string]string{"scheduling.koordinator.sh/resource-status": `{"cpuset": "0"}`},
	},
	{
		name: "memory-qos", file: "memory.low", before: "0", after: "1048576",
		annotations: map[string]string{"memory-qos.wasmproxy.io/request.app": "1048576"},
	},
}

// TestBundledPluginsSetOlderPods: a pod that is older than a bundled plugin has its values, and has them again
// after a bypass, after the plugin was disabled, and when its file has another name.
func TestBundledPluginsSetOlderPods(t *testing.T) {
	for _, b := range settingValues {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.test(t)
		})
	}
}

func (b bundled) test(t *testing.T) {
	n := bypassable(t)
	n.config.CgroupRoot, n.config.CgroupMode, n.config.StateDir = filepath.Join(n.dir, "cgroup"), "v2", filepath.Join(n.dir, "run", "state")
	n.must(os.Mkdir(n.config.CgroupRoot, 0o755))
	runtime := startReporting(n)
	n.put("90-noop.wasm", "noop")
	n.start(daemon.Run)
	n.awaitActive("90-noop")
	container, file := b.run(n)
	has := func(event, want string, quota int64) {
		t.Helper()
		n.eventually(event+": "+b.file, want, n.content(file))
		n.eventually(event+": the runtime's quota", fmt.Sprint(quota), func() string { return fmt.Sprint(runtime.resources(container).GetCpuQuota()) })
	}
	set := func(event string) { t.Helper(); has(event, b.after, cmp.Or(b.quota, kubelets.CpuQuota)) }
	undone := func(event string) { t.Helper(); has(event, b.before, kubelets.CpuQuota) }
	undone("without the plugin")

	code := plugins.All()[slices.IndexFunc(plugins.All(), func(p plugins.Plugin) bool { return p.Name == b.name })].Module
	settings := `"grant": ["update.others"]`
	if b.config != "" {
		settings += `, "config": ` + b.config
	}
	n.putRaw("10-it.json", `{`+settings+`}`)
	n.putRaw("10-it.wasm", string(code))
	set("the plugin is installed")

	n.bypass("")
	n.awaitUndone()
	undone("a bypass")
	n.endBypass()
	set("the bypass has ended")

	n.putRaw("10-it.json", `{"enabled": false, `+settings+`}`)
	undone("the plugin is disabled")
	n.putRaw("10-it.json", `{`+settings+`}`)
	set("the plugin is enabled")

	n.remove("10-it.wasm")
	n.remove("10-it.json")
	undone("the plugin is removed")
	n.putRaw("20-it.json", `{`+settings+`}`)
	n.putRaw("20-it.wasm", string(code))
	set("the plugin has another name")
}

// run runs the pod with its container, and returns the container's id and the file.
func (b bundled) run(n *node) (id, file string) {
	n.t.Helper()
	pod := podNamed("web")
	pod.Labels, pod.Annotations, pod.Linux.CgroupParent = b.labels, b.annotations, "/kubepods/burstable/podweb"
	sandbox, err := n.kubelet.RunPodSandbox(n.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: pod})
	n.must(err)
	c, err := n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.GetPodSandboxId(), SandboxConfig: pod,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: kubelets},
		},
	})
	n.must(err)
	id = c.GetContainerId()
	group := filepath.Join(n.config.CgroupRoot, pod.Linux.CgroupParent)
	n.must(os.MkdirAll(filepath.Join(group, id), 0o755))
	for _, dir := range []string{group, filepath.Join(group, id)} {
		n.must(os.WriteFile(filepath.Join(dir, b.file), []byte(b.before+"\n"), 0o644))
	}
	_, err = n.kubelet.StartContainer(n.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	n.must(err)
	if b.ofPod {
		return id, filepath.Join(group, b.file)
	}
	return id, filepath.Join(group, id, b.file)
}

// eventually waits until something is as wanted.
func (n *node) eventually(what, want string, is func() string) {
	n.t.Helper()
	for end := time.Now().Add(patience); is() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%s is %q, want %q; the log:\n%s", what, is(), want, n.log)
		}
	}
}

// reporting is a node's runtime that tells the configurations of pods and containers in verbose statuses, as
// containerd does, and what updates have made of their resources.
type reporting struct {
	*fake.RemoteRuntime
	mu         sync.Mutex
	pods       map[string]*runtimeapi.PodSandboxConfig
	containers map[string]*runtimeapi.CreateContainerRequest
	now        map[string]*runtimeapi.LinuxContainerResources
}

// startReporting has it be the backend of the node.
func startReporting(n *node) *reporting {
	r := &reporting{
		RemoteRuntime: n.runtime, pods: map[string]*runtimeapi.PodSandboxConfig{},
		containers: map[string]*runtimeapi.CreateContainerRequest{}, now: map[string]*runtimeapi.LinuxContainerResources{},
	}
	n.config.Backend = n.dir + "/reporting.sock"
	l, err := net.Listen("unix", n.config.Backend)
	n.must(err)
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	go func() { _ = server.Serve(l) }()
	n.t.Cleanup(server.Stop)
	return r
}

func (r *reporting) resources(container string) *runtimeapi.LinuxContainerResources {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proto.CloneOf(r.now[container])
}

func (r *reporting) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	resp, err := r.RemoteRuntime.RunPodSandbox(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[resp.GetPodSandboxId()] = req.GetConfig()
	return resp, err
}

func (r *reporting) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	resp, err := r.RemoteRuntime.CreateContainer(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[resp.GetContainerId()], r.now[resp.GetContainerId()] = req, proto.CloneOf(req.GetConfig().GetLinux().GetResources())
	return resp, err
}

func (r *reporting) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	resp, err := r.RemoteRuntime.UpdateContainerResources(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	proto.Merge(r.now[req.GetContainerId()], req.GetLinux())
	return resp, err
}

func (r *reporting) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	resp, err := r.RemoteRuntime.PodSandboxStatus(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	resp.Info, err = verbose(map[string]any{"config": r.pods[req.GetPodSandboxId()]})
	return resp, err
}

func (r *reporting) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	resp, err := r.RemoteRuntime.ContainerStatus(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.containers[req.GetContainerId()]
	resp.Status.Resources = &runtimeapi.ContainerResources{Linux: proto.CloneOf(r.now[req.GetContainerId()])}
	resp.Info, err = verbose(map[string]any{"sandboxID": made.GetPodSandboxId(), "config": made.GetConfig()})
	return resp, err
}

func verbose(info map[string]any) (map[string]string, error) {
	text, err := json.Marshal(info)
	return map[string]string{"info": string(text)}, err
}
