package koord_test

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// kubelet's calls, each with the deadline that the tests give it.
const deadline = 10 * time.Second

func (n *node) timed() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.Context(), deadline)
}

func (n *node) runPod(config *cri.PodSandboxConfig) (string, error) {
	ctx, cancel := n.timed()
	defer cancel()
	resp, err := n.kubelet.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config, RuntimeHandler: "runc"})
	return resp.GetPodSandboxId(), err
}

func (n *node) create(pod string, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (string, error) {
	ctx, cancel := n.timed()
	defer cancel()
	resp, err := n.kubelet.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: pod, Config: config, SandboxConfig: sandbox})
	return resp.GetContainerId(), err
}

func (n *node) startContainer(id string) error {
	ctx, cancel := n.timed()
	defer cancel()
	_, err := n.kubelet.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: id})
	return err
}

func (n *node) stopContainer(id string) error {
	ctx, cancel := n.timed()
	defer cancel()
	_, err := n.kubelet.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id})
	return err
}

func (n *node) removeContainer(id string) error {
	ctx, cancel := n.timed()
	defer cancel()
	_, err := n.kubelet.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: id})
	return err
}

func (n *node) stopPod(id string) error {
	ctx, cancel := n.timed()
	defer cancel()
	_, err := n.kubelet.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

func (n *node) update(req *cri.UpdateContainerResourcesRequest) error {
	ctx, cancel := n.timed()
	defer cancel()
	_, err := n.kubelet.UpdateContainerResources(ctx, req)
	return err
}

// running is a pod with a container in it, which the proxy was told of. It
// fails the test if it cannot be had.
func (n *node) running() (pod, container string) {
	n.Helper()
	pod, err := n.runPod(podConfig())
	n.must(err)
	container, err = n.create(pod, containerConfig(), podConfig())
	n.must(err)
	n.must(n.startContainer(container))
	return pod, container
}

// podConfig is a pod's, with all that hooks are told of.
func podConfig() *cri.PodSandboxConfig {
	return &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: "web", Namespace: "shop", Uid: "uid-1", Attempt: 2},
		Labels:      map[string]string{"app": "web", "io.kubernetes.pod.name": "web"},
		Annotations: map[string]string{"kubernetes.io/config.source": "api"},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: "/kubepods/burstable/poduid-1",
			Overhead:     &cri.LinuxContainerResources{CpuShares: 10, MemoryLimitInBytes: 1 << 20},
			Resources:    &cri.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 512, MemoryLimitInBytes: 256 << 20},
		},
	}
}

// containerConfig is a container's, with all that hooks are told of.
func containerConfig() *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: "main", Attempt: 1},
		Image:       &cri.ImageSpec{Image: "web:1"},
		Annotations: map[string]string{"io.kubernetes.container.restartCount": "1"},
		Labels:      map[string]string{"io.kubernetes.container.name": "main"},
		Envs:        envs("GREETING", "hello", "PORT", "80", "EMPTY", ""),
		Linux:       &cri.LinuxContainerConfig{Resources: resources()},
	}
}

func resources() *cri.LinuxContainerResources {
	return &cri.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 512, MemoryLimitInBytes: 128 << 20, OomScoreAdj: 900, CpusetCpus: "0-1", CpusetMems: "0",
		HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB"}}, Unified: map[string]string{"memory.high": "100000000"},
		MemorySwapLimitInBytes: 128 << 20,
	}
}

// envs makes an environment of names and values in turn.
func envs(pairs ...string) (list []*cri.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, &cri.KeyValue{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return list
}

// with returns a copy of the message, changed.
func with[M proto.Message](m M, change func(M)) M {
	m = proto.CloneOf(m)
	change(m)
	return m
}
