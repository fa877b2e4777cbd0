package simulate

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// backend is a runtime that does whatever the proxy asks of its own accord, and knows
// no more than the store: what is not there is not there.
type backend struct {
	mu      sync.Mutex
	updates []*runtimeapi.UpdateContainerResourcesRequest
}

var errUnknown = status.Error(codes.NotFound, "the event has no such object")

func (b *backend) UpdateContainerResources(
	_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest, _ ...grpc.CallOption,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updates = append(b.updates, proto.CloneOf(r))
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

func (b *backend) ListPodSandbox(
	context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{}, nil
}

func (b *backend) PodSandboxStatus(
	context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	return nil, errUnknown
}

func (b *backend) ListContainers(
	context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{}, nil
}

func (b *backend) ContainerStatus(
	context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	return nil, errUnknown
}

// images is an image service that has all images, with the digests of these.
type images map[string][]string

func (i images) ImageStatus(
	_ context.Context, r *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ImageStatusResponse, error) {
	image := r.GetImage()
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: image.GetImage(), RepoDigests: i[imageName(image)]}}, nil
}
