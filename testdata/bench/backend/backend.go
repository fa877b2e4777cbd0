// Package backend is a CRI runtime that answers at once, so that a benchmark sees the cost
// of the way to it and nothing else. It speaks the real CRI types. It keeps pods and
// containers in memory and runs none.
package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// MaxMessage is the size in bytes of the largest message that backend and client accept.
// It is far above what is sent: limits are not what is measured.
const MaxMessage = 64 << 20

// Serve answers CRI on a unix socket at path until the process ends.
func Serve(path string) error {
	lis, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))
	cri.RegisterRuntimeServiceServer(srv, &runtime{large: LargeList()})
	cri.RegisterImageServiceServer(srv, images{})
	return srv.Serve(lis)
}

type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	last       atomic.Uint64 // the number in the last id given
	pods       sync.Map      // id -> *cri.PodSandboxConfig
	containers sync.Map      // id -> *created
	large      *cri.ListContainersResponse
}

type created struct {
	pod    string
	config *cri.ContainerConfig
}

// id returns a new one of containerd's length.
func (r *runtime) id() string { return fmt.Sprintf("%064x", r.last.Add(1)) }

func (*runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

func (*runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

func (r *runtime) RunPodSandbox(_ context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	id := r.id()
	r.pods.Store(id, req.GetConfig())
	return &cri.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (*runtime) StopPodSandbox(context.Context, *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *runtime) RemovePodSandbox(_ context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.pods.Delete(req.GetPodSandboxId())
	return &cri.RemovePodSandboxResponse{}, nil
}

// ListPodSandbox lists the pods of all parties, as a node has those of all users: a proxy forgets what it does not find here.
func (r *runtime) ListPodSandbox(_ context.Context, req *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	resp := &cri.ListPodSandboxResponse{}
	r.pods.Range(func(id, config any) bool {
		if want := req.GetFilter().GetId(); want == "" || want == id {
			pod := config.(*cri.PodSandboxConfig)
			resp.Items = append(resp.Items, &cri.PodSandbox{Id: id.(string), Metadata: pod.GetMetadata(), Labels: pod.GetLabels(), Annotations: pod.GetAnnotations()})
		}
		return true
	})
	return resp, nil
}

// PodSandboxStatus shows the config as it arrived, at the place where containerd shows it.
func (r *runtime) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	config, ok := r.pods.Load(req.GetPodSandboxId())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "pod sandbox %q", req.GetPodSandboxId())
	}
	info, err := json.Marshal(map[string]any{"config": config})
	if err != nil {
		return nil, err
	}
	pod := config.(*cri.PodSandboxConfig)
	return &cri.PodSandboxStatusResponse{
		Status: &cri.PodSandboxStatus{Id: req.GetPodSandboxId(), Metadata: pod.GetMetadata(), Labels: pod.GetLabels(), Annotations: pod.GetAnnotations()},
		Info:   map[string]string{"info": string(info)},
	}, nil
}

func (r *runtime) CreateContainer(_ context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	if _, ok := r.pods.Load(req.GetPodSandboxId()); !ok {
		return nil, status.Errorf(codes.NotFound, "pod sandbox %q", req.GetPodSandboxId())
	}
	id := r.id()
	r.containers.Store(id, &created{req.GetPodSandboxId(), req.GetConfig()})
	return &cri.CreateContainerResponse{ContainerId: id}, nil
}

// ContainerStatus shows the config as it arrived, at the place where containerd shows it.
func (r *runtime) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	found, ok := r.containers.Load(req.GetContainerId())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q", req.GetContainerId())
	}
	c := found.(*created)
	info, err := json.Marshal(map[string]any{"sandboxID": c.pod, "config": c.config})
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatusResponse{
		Status: &cri.ContainerStatus{Id: req.GetContainerId(), Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations()},
		Info:   map[string]string{"info": string(info)},
	}, nil
}

func (*runtime) StartContainer(context.Context, *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	return &cri.StartContainerResponse{}, nil
}

func (*runtime) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

func (*runtime) UpdatePodSandboxResources(context.Context, *cri.UpdatePodSandboxResourcesRequest) (*cri.UpdatePodSandboxResourcesResponse, error) {
	return &cri.UpdatePodSandboxResourcesResponse{}, nil
}

func (*runtime) ExecSync(context.Context, *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	return &cri.ExecSyncResponse{}, nil
}

func (*runtime) Exec(context.Context, *cri.ExecRequest) (*cri.ExecResponse, error) {
	return &cri.ExecResponse{}, nil
}

func (*runtime) Attach(context.Context, *cri.AttachRequest) (*cri.AttachResponse, error) {
	return &cri.AttachResponse{}, nil
}

func (*runtime) PortForward(context.Context, *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return &cri.PortForwardResponse{}, nil
}

func (*runtime) CheckpointContainer(context.Context, *cri.CheckpointContainerRequest) (*cri.CheckpointContainerResponse, error) {
	return &cri.CheckpointContainerResponse{}, nil
}

// images is an image service that has every image.
type images struct {
	cri.UnimplementedImageServiceServer
}

func (images) PullImage(_ context.Context, req *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	return &cri.PullImageResponse{ImageRef: req.GetImage().GetImage()}, nil
}

func (images) RemoveImage(context.Context, *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	return &cri.RemoveImageResponse{}, nil
}

func (*runtime) StopContainer(context.Context, *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	return &cri.StopContainerResponse{}, nil
}

func (r *runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.containers.Delete(req.GetContainerId())
	return &cri.RemoveContainerResponse{}, nil
}

// ListContainers answers the large list to who asks for it by LargeListLabel, else the containers that there are.
func (r *runtime) ListContainers(_ context.Context, req *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	if _, ok := req.GetFilter().GetLabelSelector()[LargeListLabel]; ok {
		return r.large, nil
	}
	resp := &cri.ListContainersResponse{}
	r.containers.Range(func(id, found any) bool {
		if want := req.GetFilter().GetId(); want == "" || want == id {
			c := found.(*created)
			resp.Containers = append(resp.Containers, &cri.Container{
				Id: id.(string), PodSandboxId: c.pod, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
			})
		}
		return true
	})
	return resp, nil
}
