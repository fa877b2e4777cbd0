package koord_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerdLimit is the largest message, in bytes, that containerd and kubelet take.
const containerdLimit = 16 << 20

// runtime is a CRI runtime that keeps pods and containers and runs none. It
// remembers what it was asked and does as it is told, which real ones do not.
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	socket string
	server *grpc.Server

	mu         sync.Mutex
	last       int
	pods       map[string]*cri.RunPodSandboxRequest
	containers map[string]*cri.CreateContainerRequest
	started    map[string]bool
	asked      []asked
	events     chan *cri.ContainerEventResponse

	// fault is asked before each call, with the method's short name, and may
	// refuse it. Set it by setFault.
	fault func(method string, req proto.Message) error
	list  *cri.ListContainersResponse // answered if set
}

// asked is a call as it arrived.
type asked struct {
	method   string // short
	req      proto.Message
	metadata metadata.MD
}

func newRuntime(socket string) *runtime {
	return &runtime{
		socket: socket, pods: map[string]*cri.RunPodSandboxRequest{}, containers: map[string]*cri.CreateContainerRequest{},
		started: map[string]bool{}, events: make(chan *cri.ContainerEventResponse, 10),
	}
}

// start serves until stop. What it keeps stays in between.
func (r *runtime) start() error {
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		return err
	}
	r.server = grpc.NewServer(grpc.MaxRecvMsgSize(containerdLimit), grpc.MaxSendMsgSize(containerdLimit), grpc.UnaryInterceptor(r.intercept), grpc.UnknownServiceHandler(newer))
	cri.RegisterRuntimeServiceServer(r.server, r)
	go r.server.Serve(l)
	return nil
}

// newer answers calls of services and methods that are not in the CRI of the
// tests: with what it was sent.
func newer(_ any, stream grpc.ServerStream) error {
	m := &cri.VersionRequest{}
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	return stream.SendMsg(m)
}

func (r *runtime) stop() {
	if r.server != nil {
		r.server.Stop()
	}
}

func (r *runtime) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	md, _ := metadata.FromIncomingContext(ctx)
	r.mu.Lock()
	r.asked = append(r.asked, asked{method, proto.Clone(req.(proto.Message)), md})
	fault := r.fault
	r.mu.Unlock()
	if fault != nil {
		if err := fault(method, req.(proto.Message)); err != nil {
			return nil, err
		}
	}
	grpc.SetHeader(ctx, metadata.Pairs("runtime-header", method))
	grpc.SetTrailer(ctx, metadata.Pairs("runtime-trailer", method))
	return next(ctx, req)
}

func (r *runtime) setFault(fault func(method string, req proto.Message) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// failing is a fault that refuses these methods.
func failing(methods ...string) func(string, proto.Message) error {
	return func(method string, _ proto.Message) error {
		if slices.Contains(methods, method) {
			return status.Errorf(codes.Unknown, "%s fails, as it was told", method)
		}
		return nil
	}
}

// calls returns the calls of a method, the oldest first.
func (r *runtime) calls(method string) []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.asked), func(a asked) bool { return a.method != method })
}

// lastRequest returns the newest request of a type that arrived.
func lastRequest[M proto.Message](r *runtime) (m M) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.asked {
		if req, ok := a.req.(M); ok {
			m = req
		}
	}
	return m
}

func (r *runtime) id(kind string) string {
	r.last++
	return fmt.Sprintf("%s%059d", kind, r.last)
}

func (*runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

func (*runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{}}, nil
}

func (r *runtime) RunPodSandbox(_ context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.id("sand")
	r.pods[id] = req
	return &cri.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (*runtime) StopPodSandbox(context.Context, *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *runtime) RemovePodSandbox(_ context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, req.GetPodSandboxId())
	for id, c := range r.containers {
		if c.GetPodSandboxId() == req.GetPodSandboxId() {
			delete(r.containers, id)
		}
	}
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *runtime) CreateContainer(_ context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.id("cont")
	r.containers[id] = req
	return &cri.CreateContainerResponse{ContainerId: id}, nil
}

func (r *runtime) StartContainer(_ context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.containers[req.GetContainerId()]; !ok {
		return nil, status.Errorf(codes.NotFound, "container %q", req.GetContainerId())
	}
	r.started[req.GetContainerId()] = true
	return &cri.StartContainerResponse{}, nil
}

func (*runtime) StopContainer(context.Context, *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	return &cri.StopContainerResponse{}, nil
}

func (r *runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, req.GetContainerId())
	return &cri.RemoveContainerResponse{}, nil
}

func (*runtime) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

func (r *runtime) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &cri.ListPodSandboxResponse{}
	for id, p := range r.pods {
		list.Items = append(list.Items, &cri.PodSandbox{
			Id: id, Metadata: p.GetConfig().GetMetadata(), RuntimeHandler: p.GetRuntimeHandler(),
			Labels: p.GetConfig().GetLabels(), Annotations: p.GetConfig().GetAnnotations(),
		})
	}
	return list, nil
}

func (r *runtime) ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list != nil {
		return r.list, nil
	}
	list := &cri.ListContainersResponse{}
	for id, c := range r.containers {
		list.Containers = append(list.Containers, &cri.Container{
			Id: id, PodSandboxId: c.GetPodSandboxId(), Metadata: c.GetConfig().GetMetadata(), State: r.state(id),
			Labels: c.GetConfig().GetLabels(), Annotations: c.GetConfig().GetAnnotations(),
		})
	}
	return list, nil
}

func (r *runtime) state(id string) cri.ContainerState {
	if r.started[id] {
		return cri.ContainerState_CONTAINER_RUNNING
	}
	return cri.ContainerState_CONTAINER_CREATED
}

// PodSandboxStatus and ContainerStatus show the config where containerd 2 shows it.
func (r *runtime) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pods[req.GetPodSandboxId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "pod sandbox %q", req.GetPodSandboxId())
	}
	info, err := json.Marshal(map[string]any{"config": p.GetConfig(), "runtimeHandler": p.GetRuntimeHandler()})
	return &cri.PodSandboxStatusResponse{Info: map[string]string{"info": string(info)}, Status: &cri.PodSandboxStatus{
		Id: req.GetPodSandboxId(), Metadata: p.GetConfig().GetMetadata(), RuntimeHandler: p.GetRuntimeHandler(),
		Labels: p.GetConfig().GetLabels(), Annotations: p.GetConfig().GetAnnotations(),
	}}, err
}

func (r *runtime) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q", req.GetContainerId())
	}
	info, err := json.Marshal(map[string]any{"sandboxID": c.GetPodSandboxId(), "config": c.GetConfig()})
	return &cri.ContainerStatusResponse{Info: map[string]string{"info": string(info)}, Status: &cri.ContainerStatus{
		Id: req.GetContainerId(), Metadata: c.GetConfig().GetMetadata(), State: r.state(req.GetContainerId()),
		Labels: c.GetConfig().GetLabels(), Annotations: c.GetConfig().GetAnnotations(),
		Resources: &cri.ContainerResources{Linux: c.GetConfig().GetLinux().GetResources()},
	}}, err
}

func (*runtime) ExecSync(_ context.Context, req *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	return &cri.ExecSyncResponse{Stdout: fmt.Append(nil, len(req.GetCmd()[0]))}, nil
}

func (r *runtime) GetContainerEvents(_ *cri.GetEventsRequest, stream grpc.ServerStreamingServer[cri.ContainerEventResponse]) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case e := <-r.events:
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}
