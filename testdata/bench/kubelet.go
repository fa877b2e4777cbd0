package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/bench/backend"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// kubelet's --runtime-request-timeout; every call carries it to the proxy.
const requestTimeout = 2 * time.Minute

// A kubelet calls one party over one connection, one call at a time, as kubelet does for one pod.
type kubelet struct {
	conn   *grpc.ClientConn
	cri    cri.RuntimeServiceClient
	create map[podKind]*cri.CreateContainerRequest // what createContainer sends; set by runPods
	ids    []string                                // containers made and not yet removed
	pods   []string                                // the same of runPod
}

func dial(socket string) (*kubelet, error) {
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(backend.MaxMessage)))
	if err != nil {
		return nil, err
	}
	return &kubelet{conn: conn, cri: cri.NewRuntimeServiceClient(conn)}, nil
}

// version is the smallest call there is.
func (k *kubelet) version(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := k.cri.Version(ctx, &cri.VersionRequest{})
	return err
}

// listLarge lists containers of 16 MiB.
func (k *kubelet) listLarge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := k.cri.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		LabelSelector: map[string]string{backend.LargeListLabel: ""},
	}})
	return err
}

// runPods makes a pod of each kind for createContainer to fill: a proxy hooks only containers of pods that it saw.
func (k *kubelet) runPods(ctx context.Context) error {
	k.create = map[podKind]*cri.CreateContainerRequest{}
	for _, kind := range []podKind{plain, annotated} {
		pod := podConfig(kind)
		resp, err := k.cri.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
		if err != nil {
			return fmt.Errorf("run the %s pod: %w", kind, err)
		}
		k.create[kind] = &cri.CreateContainerRequest{PodSandboxId: resp.GetPodSandboxId(), Config: containerConfig(), SandboxConfig: pod}
	}
	return nil
}

// createContainer makes a container in the pod of that kind; remove removes it.
func (k *kubelet) createContainer(ctx context.Context, kind podKind) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := k.cri.CreateContainer(ctx, k.create[kind])
	if err == nil {
		k.ids = append(k.ids, resp.GetContainerId())
	}
	return err
}

// runPod runs a pod; remove removes it.
func (k *kubelet) runPod(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := k.cri.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: k.create[plain].SandboxConfig})
	if err == nil {
		k.pods = append(k.pods, resp.GetPodSandboxId())
	}
	return err
}

// remove stops and removes what createContainer and runPod made, so that no store grows.
func (k *kubelet) remove(ctx context.Context) error {
	for _, id := range k.ids {
		if _, err := k.cri.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id}); err != nil {
			return fmt.Errorf("stop container: %w", err)
		}
		if _, err := k.cri.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: id}); err != nil {
			return fmt.Errorf("remove container: %w", err)
		}
	}
	for _, id := range k.pods {
		if _, err := k.cri.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
			return fmt.Errorf("stop pod: %w", err)
		}
		if _, err := k.cri.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
			return fmt.Errorf("remove pod: %w", err)
		}
	}
	k.ids, k.pods = k.ids[:0], k.pods[:0]
	return nil
}

// arrived returns the resources with which the newest container reached the backend.
func (k *kubelet) arrived(ctx context.Context) (*cri.LinuxContainerResources, error) {
	id := k.ids[len(k.ids)-1]
	resp, err := k.cri.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return nil, fmt.Errorf("status of container: %w", err)
	}
	var info struct{ Config cri.ContainerConfig }
	if err := json.Unmarshal([]byte(resp.GetInfo()["info"]), &info); err != nil {
		return nil, fmt.Errorf("config of container: %w", err)
	}
	return info.Config.GetLinux().GetResources(), nil
}
