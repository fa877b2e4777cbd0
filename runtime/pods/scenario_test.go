package pods

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// testImage is one of those that testdata/e2e makes; any image with a shell does.
const testImage = "registry.k8s.io/e2e-test-images/busybox:1.29-2"

// A scenario is a pod's life as kubelet plays it, with every value that is easily
// lost between a config and what a runtime tells of it later. observe sees each
// call that succeeded; restart is called where the proxy could have been
// restarted.
type scenario struct {
	cri     runtimeapi.RuntimeServiceClient
	observe func(req, resp proto.Message)
	restart func(point string)
	crio    bool // play it so that CRI-O does not refuse it
}

func (s *scenario) play(ctx context.Context, t *testing.T) {
	t.Helper()
	sandbox := podConfig()
	pod := call(ctx, t, s, s.cri.RunPodSandbox, &runtimeapi.RunPodSandboxRequest{Config: sandbox}).GetPodSandboxId()
	t.Cleanup(func() { s.cleanUp(pod) })
	create := func(c *runtimeapi.ContainerConfig) string {
		if s.crio { // it wants what CRI 0.28 added
			c.Image.UserSpecifiedImage = c.Image.Image
		}
		return call(ctx, t, s, s.cri.CreateContainer, &runtimeapi.CreateContainerRequest{PodSandboxId: pod, Config: c, SandboxConfig: sandbox}).GetContainerId()
	}
	update := func(id string, r *runtimeapi.LinuxContainerResources) {
		call(ctx, t, s, s.cri.UpdateContainerResources, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: r})
	}
	start := func(id string) {
		call(ctx, t, s, s.cri.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	}

	config := appConfig()
	if s.crio { // it refuses these on a kernel without hugetlb, where containerd does not
		config.Linux.Resources.HugepageLimits = nil
	}
	app, pinned, bare := create(config), create(pinnedConfig()), create(bareConfig())
	s.restart("created")
	update(app, &runtimeapi.LinuxContainerResources{CpusetCpus: "0-1"}) // kubelet's CPU manager, before the start
	start(app)
	start(pinned)
	start(bare)
	update(app, &runtimeapi.LinuxContainerResources{CpusetCpus: "0"})
	update(bare, &runtimeapi.LinuxContainerResources{CpusetCpus: "1"})
	s.restart("pinned")
	update(app, &runtimeapi.LinuxContainerResources{ // an in-place resize
		CpuPeriod: 100000, CpuQuota: 30000, CpuShares: 307, MemoryLimitInBytes: 96 << 20, OomScoreAdj: 500,
	})
	update(pinned, &runtimeapi.LinuxContainerResources{CpuQuota: 50000, MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 64 << 20})
	s.resizePod(ctx, t, pod)
	s.restart("resized")
	call(ctx, t, s, s.cri.StopContainer, &runtimeapi.StopContainerRequest{ContainerId: app})
	s.restart("stopped")
	call(ctx, t, s, s.cri.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: app})
	call(ctx, t, s, s.cri.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod})
	s.restart("pod stopped")
	call(ctx, t, s, s.cri.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
	s.restart("removed")
}

// resizePod needs a runtime with CRI 0.33.
func (s *scenario) resizePod(ctx context.Context, t *testing.T, pod string) {
	t.Helper()
	req := &runtimeapi.UpdatePodSandboxResourcesRequest{
		PodSandboxId: pod,
		Overhead:     &runtimeapi.LinuxContainerResources{CpuShares: 11},
		Resources:    &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 80000, CpuShares: 700, MemoryLimitInBytes: 160 << 20},
	}
	resp, err := s.cri.UpdatePodSandboxResources(ctx, req)
	if status.Code(err) == codes.Unimplemented {
		t.Log("this runtime has no UpdatePodSandboxResources")
		return
	}
	if err != nil {
		t.Fatalf("UpdatePodSandboxResources: %v", err)
	}
	s.observe(req, resp)
}

func (s *scenario) cleanUp(pod string) {
	ctx := context.Background()
	s.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod})
	s.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
}

func podConfig() *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "store", Uid: "7b6f0f2e-store", Namespace: "wasmproxy-test", Attempt: 2},
		LogDirectory: "/var/log/pods/wasmproxy-test_store",
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"svc.cluster.local"}},
		Labels: map[string]string{
			"app": "store", "io.kubernetes.pod.name": "store",
			"io.kubernetes.pod.namespace": "wasmproxy-test", "io.kubernetes.pod.uid": "7b6f0f2e-store",
		},
		Annotations: map[string]string{"note": "zażółć <&> \"quoted\"\n", "empty": ""},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: "/wasmproxy-test/kubepods/burstable/pod7b6f0f2e",
			Overhead:     &runtimeapi.LinuxContainerResources{CpuShares: 10, MemoryLimitInBytes: 4 << 20},
			Resources:    &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 60000, CpuShares: 614},
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER},
			},
		},
	}
}

func containerConfig(name string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: testImage},
		Command:  []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"},
		LogPath:  name + "/0.log",
		Linux: &runtimeapi.LinuxContainerConfig{
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER},
			},
		},
	}
}

// appConfig has what kubelet gives a burstable container, and env values that
// look like base64, are doubled, empty, or not text.
func appConfig() *runtimeapi.ContainerConfig {
	c := containerConfig("app")
	c.Envs = env("MODE", "prod", "B64", "YWJj", "EMPTY", "", "EQ", "a=b=c", "TWICE", "one", "UNI", "zażółć\n<&>", "TWICE", "two", "PATH", "/usr/bin:/bin")
	c.Labels = map[string]string{"io.kubernetes.container.name": "app"}
	c.Annotations = map[string]string{"io.kubernetes.container.hash": "b0b0"}
	c.Linux.Resources = &runtimeapi.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: 20000, CpuShares: 204, MemoryLimitInBytes: 128 << 20, OomScoreAdj: 990,
		HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB"}},
	}
	return c
}

// pinnedConfig sets what a runtime would otherwise choose, and a value that
// every string decoder spoils.
func pinnedConfig() *runtimeapi.ContainerConfig {
	c := containerConfig("pinned")
	c.Envs = env("ONLY", "dHJ1ZQ==", "BYTES", "\xff\xfe")
	c.Linux.Resources = &runtimeapi.LinuxContainerResources{
		CpuQuota: -1, CpusetCpus: "0", CpusetMems: "0", MemoryLimitInBytes: 32 << 20, MemorySwapLimitInBytes: 48 << 20,
	}
	return c
}

// bareConfig sets nothing.
func bareConfig() *runtimeapi.ContainerConfig { return containerConfig("bare") }

// env makes a list of key, value, key, value …
func env(kv ...string) []*runtimeapi.KeyValue {
	var list []*runtimeapi.KeyValue
	for i := 0; i < len(kv); i += 2 {
		list = append(list, &runtimeapi.KeyValue{Key: kv[i], Value: []byte(kv[i+1])})
	}
	return list
}

// call makes a call that has to succeed, and lets the scenario observe it.
func call[Req, Resp proto.Message](ctx context.Context, t *testing.T, s *scenario, f func(context.Context, Req, ...grpc.CallOption) (Resp, error), req Req) Resp {
	t.Helper()
	resp, err := f(ctx, req)
	if err != nil {
		t.Fatalf("%s: %v", req.ProtoReflect().Descriptor().Name(), err)
	}
	s.observe(req, resp)
	return resp
}
