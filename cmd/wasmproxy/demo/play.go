package demo

import (
	"context"
	"fmt"
	"path"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/kubelet"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

const (
	podCgroup = "/kubepods/burstable/pod4f1c"
	image     = "registry.example/web:1"
)

// Limits of each container of the show: µs of CPU in 100 ms, and bytes.
const (
	quota  = 50_000
	memory = 128 << 20
)

// play is a pod's life in four acts.
func (s *session) play(ctx context.Context) error {
	s.title("1. Without plugins the proxy is a wire")
	limits := &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 3 * quota, MemoryLimitInBytes: 3 * memory} // of its containers
	pod, err := s.runPod(ctx, "RunPodSandbox shop/web", limits, &runtimeapi.RunPodSandboxRequest{Config: s.podConfig()})
	if err != nil {
		return err
	}
	plain, err := s.runContainer(ctx, pod, "plain", expect{})
	if err != nil {
		return err
	}
	s.title("2. A plugin arrives while the proxy runs, and sets what CRI has no field for")
	if err := s.install(ctx, "10-qos", plugins.QoS); err != nil {
		return err
	}
	tuned, err := s.runContainer(ctx, pod, "tuned", expect{changed: true, burst: "20000", high: "100663296"})
	if err != nil {
		return err
	}
	s.title("3. kubelet lowers the quota: the kernel would refuse it with the burst in place")
	lower := &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 10_000} // than the burst
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: tuned, Linux: lower}
	_, updated, err := request(ctx, s, "UpdateContainerResources", s.kubelet.UpdateContainerResources, req)
	if err != nil {
		return err
	}
	group := path.Join(podCgroup, tuned)[1:]
	if limit, burst := updated.files[group+"/cpu.max"], updated.files[group+"/cpu.max.burst"]; limit != "10000 100000" || burst != "10000" {
		return fmt.Errorf("after the update cpu.max is %q and cpu.max.burst is %q", limit, burst)
	}
	s.title("4. A second plugin wants another burst: the first one stands, the call goes on")
	if err := s.install(ctx, "20-burstcap", burstCap); err != nil {
		return err
	}
	contested, err := s.runContainer(ctx, pod, "contested", expect{changed: true, conflict: true, burst: "20000", high: "100663296"})
	if err != nil {
		return err
	}
	s.title("5. The pod ends")
	return s.end(ctx, pod, plain, tuned, contested)
}

// expect is what a container's life has to show.
type expect struct {
	changed, conflict bool
	burst, high       string // of its cgroup; empty: as the runtime made it
}

func (s *session) podConfig() *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "shop", Uid: "4f1c"},
		Annotations: map[string]string{
			"qos.wasmproxy.io/cpu-burst":   "20000",
			"qos.wasmproxy.io/memory-high": "100663296",
		},
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: podCgroup},
	}
}

// runPod makes the pod's cgroup with these limits, as kubelet does, and runs its sandbox.
func (s *session) runPod(
	ctx context.Context, name string, limits *runtimeapi.LinuxContainerResources, req *runtimeapi.RunPodSandboxRequest,
) (id string, err error) {
	if err := s.cgroups.Make(req.GetConfig().GetLinux().GetCgroupParent(), limits); err != nil {
		return "", err
	}
	resp, _, err := request(ctx, s, name, s.kubelet.RunPodSandbox, req)
	return resp.GetPodSandboxId(), err
}

// runContainer creates and starts a container, and checks that what is to be
// shown has happened.
func (s *session) runContainer(ctx context.Context, pod, name string, want expect) (id string, err error) {
	create := &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name},
			Image:    &runtimeapi.ImageSpec{Image: kubelet.ImageID(image), UserSpecifiedImage: image},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{
				CpuPeriod: 100_000, CpuQuota: quota, CpuShares: 512, MemoryLimitInBytes: memory,
			}},
		},
		SandboxConfig: s.podConfig(),
	}
	resp, created, err := request(ctx, s, "CreateContainer "+name, s.kubelet.CreateContainer, create)
	if err != nil {
		return "", err
	}
	id = resp.GetContainerId()
	_, started, err := request(ctx, s, "StartContainer", s.kubelet.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	if err != nil {
		return "", err
	}
	group := path.Join(podCgroup, id)[1:]
	burst, high := started.files[group+"/cpu.max.burst"], started.files[group+"/memory.high"]
	if want.burst == "" {
		want.burst, want.high = "0", "max"
	}
	got := expect{changed: created.changed, conflict: len(observe.All[*observe.Conflict](created.events)) > 0, burst: burst, high: high}
	if got != want {
		return "", fmt.Errorf("container %s: the demo shows %+v, want %+v", name, got, want)
	}
	return id, nil
}

// end stops and removes everything, without much ado.
func (s *session) end(ctx context.Context, pod string, containers ...string) error {
	for _, id := range containers {
		if _, err := s.kubelet.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
			return err
		}
		if _, err := s.kubelet.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
			return err
		}
	}
	if _, err := s.kubelet.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod}); err != nil {
		return err
	}
	if _, err := s.kubelet.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
		return err
	}
	s.line(bold, "kubelet", "%s", "StopContainer, RemoveContainer, StopPodSandbox, RemovePodSandbox: all answered OK")
	return nil
}
