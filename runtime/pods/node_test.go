package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A node is a backend in memory, for what a real one cannot be told to do: stop
// in the middle of an answer, fail, or have 20,000 containers. Its verbose
// statuses are those of containerd 2.4 as far as the store reads them.
type node struct {
	asked func(method, id string) error // called first, with no lock held; may be nil

	mu         sync.Mutex
	pods       map[string]*runtimeapi.PodSandboxStatusResponse
	containers map[string]*runtimeapi.ContainerStatusResponse
	podOf      map[string]string
	state      map[string]runtimeapi.PodSandboxState // of pods in lists
}

func newNode() *node {
	return &node{
		pods:       map[string]*runtimeapi.PodSandboxStatusResponse{},
		containers: map[string]*runtimeapi.ContainerStatusResponse{},
		podOf:      map[string]string{},
	}
}

func (n *node) addPod(id string, config *runtimeapi.PodSandboxConfig) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[id] = &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{Id: id, Metadata: config.GetMetadata()},
		Info:   info(map[string]any{"config": config}),
	}
}

func (n *node) addContainer(id, pod string, config *runtimeapi.ContainerConfig) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.podOf[id] = pod
	n.containers[id] = &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{
			Id: id, Metadata: config.GetMetadata(),
			Resources: &runtimeapi.ContainerResources{Linux: config.GetLinux().GetResources()},
		},
		Info: info(map[string]any{"sandboxID": pod, "config": config}),
	}
}

func (n *node) remove(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, id)
	delete(n.containers, id)
}

// infoKey is where the runtimes have the object.
const infoKey = "info"

func info(v any) map[string]string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return map[string]string{infoKey: string(b)}
}

func (n *node) ask(ctx context.Context, method, id string) error {
	if n.asked != nil {
		if err := n.asked(method, id); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (n *node) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest, _ ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	resp := &runtimeapi.ListPodSandboxResponse{}
	n.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(n.pods)) {
		if only := req.GetFilter().GetId(); only == "" || only == id {
			resp.Items = append(resp.Items, &runtimeapi.PodSandbox{Id: id, State: n.state[id], Metadata: n.pods[id].GetStatus().GetMetadata()})
		}
	}
	n.mu.Unlock()
	return resp, n.ask(ctx, "ListPodSandbox", "")
}

func (n *node) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest, _ ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	resp := &runtimeapi.ListContainersResponse{}
	n.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(n.containers)) {
		if only := req.GetFilter().GetId(); only == "" || only == id {
			resp.Containers = append(resp.Containers, &runtimeapi.Container{Id: id, PodSandboxId: n.podOf[id], State: n.containers[id].GetStatus().GetState(), Metadata: n.containers[id].GetStatus().GetMetadata()})
		}
	}
	n.mu.Unlock()
	return resp, n.ask(ctx, "ListContainers", "")
}

func (n *node) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	return tell(ctx, n, "PodSandboxStatus", req.GetPodSandboxId(), n.pods)
}

func (n *node) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return tell(ctx, n, "ContainerStatus", req.GetContainerId(), n.containers)
}

// tell takes the answer before it calls asked: what happens there is news that
// the answer does not have.
func tell[T any](ctx context.Context, n *node, method, id string, from map[string]*T) (*T, error) {
	n.mu.Lock()
	resp, ok := from[id]
	n.mu.Unlock()
	if err := n.ask(ctx, method, id); err != nil {
		return nil, err
	}
	if !ok {
		return nil, status.Error(codes.NotFound, fmt.Sprintf("no %s here", id))
	}
	return resp, nil
}

// bigNode has so many pods, and so many containers in each.
func bigNode(pods, containers int) *node {
	n := newNode()
	for p := range pods {
		pod := fmt.Sprintf("pod-%05d", p)
		n.addPod(pod, podConfig())
		for c := range containers {
			n.addContainer(fmt.Sprintf("%s-%d", pod, c), pod, appConfig())
		}
	}
	return n
}

func (n *node) setResources(id string, r *runtimeapi.LinuxContainerResources) {
	n.mu.Lock()
	defer n.mu.Unlock()
	resp := n.containers[id]
	st := &runtimeapi.ContainerStatus{Id: id, Resources: &runtimeapi.ContainerResources{Linux: r}}
	n.containers[id] = &runtimeapi.ContainerStatusResponse{Status: st, Info: resp.Info}
}

// removePod removes a pod with its containers, as a runtime does.
func (n *node) removePod(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, id)
	maps.DeleteFunc(n.containers, func(c string, _ *runtimeapi.ContainerStatusResponse) bool { return n.podOf[c] == id })
	maps.DeleteFunc(n.podOf, func(_ string, pod string) bool { return pod == id })
}
