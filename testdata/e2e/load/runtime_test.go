package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// standIn is a container runtime in memory. A real one cannot be told to go away and come back a
// hundred times, or to be slow. It keeps its pods while it is away, and makes directories with
// plain files as cgroups. An id depends on names alone, so that a call whose answer was
// lost can be made again.
type standIn struct {
	cri.UnimplementedRuntimeServiceServer
	socket, cgroups string
	slowness        atomic.Int64 // what a call that changes something takes, in nanoseconds; then few go on at a time
	few             chan struct{}
	serving         *grpc.Server

	mu         sync.Mutex
	pods       map[string]*cri.PodSandboxConfig
	containers map[string]*held
}

// held is a container.
type held struct {
	pod    string // id
	config *cri.ContainerConfig
	state  cri.ContainerState
}

func newStandIn(socket, cgroups string) *standIn {
	return &standIn{socket: socket, cgroups: cgroups, few: make(chan struct{}, slowCalls), pods: map[string]*cri.PodSandboxConfig{}, containers: map[string]*held{}}
}

// start listens on the socket, which must not exist.
func (s *standIn) start() error {
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		return err
	}
	s.serving = grpc.NewServer(grpc.MaxConcurrentStreams(1 << 20))
	cri.RegisterRuntimeServiceServer(s.serving, s)
	go s.serving.Serve(l)
	return nil
}

// stop ends all connections, whatever is under way on them. The socket goes with the listener.
func (s *standIn) stop() { s.serving.Stop() }

// slowCalls is how many calls go on at a time while the runtime is slow.
const slowCalls = 8

// wait takes the time of a call that changes something, if the runtime is slow.
func (s *standIn) wait(ctx context.Context) error {
	d := time.Duration(s.slowness.Load())
	if d == 0 {
		return nil
	}
	select {
	case s.few <- struct{}{}:
		time.Sleep(d)
		<-s.few
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// locked calls f while nobody else changes anything.
func (s *standIn) locked(ctx context.Context, f func() error) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func (*standIn) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

func (*standIn) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

func (*standIn) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

func (s *standIn) RunPodSandbox(ctx context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	id := idOf(req.GetConfig().GetMetadata().GetUid())
	return &cri.RunPodSandboxResponse{PodSandboxId: id}, s.locked(ctx, func() error {
		s.pods[id] = req.GetConfig()
		return s.makeCgroup(req.GetConfig().GetLinux().GetCgroupParent())
	})
}

func (*standIn) StopPodSandbox(context.Context, *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	return &cri.StopPodSandboxResponse{}, nil
}

func (s *standIn) RemovePodSandbox(ctx context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	return &cri.RemovePodSandboxResponse{}, s.locked(ctx, func() error {
		pod := s.pods[req.GetPodSandboxId()]
		delete(s.pods, req.GetPodSandboxId())
		for id, c := range s.containers {
			if c.pod == req.GetPodSandboxId() {
				delete(s.containers, id)
			}
		}
		return s.removeCgroup(pod.GetLinux().GetCgroupParent())
	})
}

func (s *standIn) CreateContainer(ctx context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	id := idOf(req.GetPodSandboxId() + req.GetConfig().GetMetadata().GetName())
	return &cri.CreateContainerResponse{ContainerId: id}, s.locked(ctx, func() error {
		if s.pods[req.GetPodSandboxId()] == nil {
			return status.Errorf(codes.NotFound, "pod sandbox %q", req.GetPodSandboxId())
		}
		s.containers[id] = &held{req.GetPodSandboxId(), req.GetConfig(), cri.ContainerState_CONTAINER_CREATED}
		return nil
	})
}

// change calls f for a container and the path of its cgroup.
func (s *standIn) change(ctx context.Context, id string, f func(c *held, cgroup string) error) error {
	return s.locked(ctx, func() error {
		c := s.containers[id]
		if c == nil {
			return status.Errorf(codes.NotFound, "container %q", id)
		}
		return f(c, filepath.Join(s.pods[c.pod].GetLinux().GetCgroupParent(), id))
	})
}

func (s *standIn) StartContainer(ctx context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	return &cri.StartContainerResponse{}, s.change(ctx, req.GetContainerId(), func(c *held, cgroup string) error {
		c.state = cri.ContainerState_CONTAINER_RUNNING
		return s.makeCgroup(cgroup)
	})
}

func (s *standIn) UpdateContainerResources(ctx context.Context, req *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, s.change(ctx, req.GetContainerId(), func(c *held, _ string) error {
		c.config.Linux.Resources = req.GetLinux()
		return nil
	})
}

func (s *standIn) StopContainer(ctx context.Context, req *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	return &cri.StopContainerResponse{}, s.change(ctx, req.GetContainerId(), func(c *held, cgroup string) error {
		c.state = cri.ContainerState_CONTAINER_EXITED
		return s.removeCgroup(cgroup)
	})
}

func (s *standIn) RemoveContainer(ctx context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	return &cri.RemoveContainerResponse{}, s.locked(ctx, func() error {
		delete(s.containers, req.GetContainerId())
		return nil
	})
}

func (s *standIn) ListPodSandbox(_ context.Context, req *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &cri.ListPodSandboxResponse{}
	for id, pod := range s.pods {
		if want := req.GetFilter().GetId(); want == "" || want == id {
			list.Items = append(list.Items, &cri.PodSandbox{Id: id, Metadata: pod.GetMetadata(), Labels: pod.GetLabels(), Annotations: pod.GetAnnotations()})
		}
	}
	return list, nil
}

func (s *standIn) ListContainers(_ context.Context, req *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &cri.ListContainersResponse{}
	for id, c := range s.containers {
		if want := req.GetFilter().GetId(); want == "" || want == id {
			list.Containers = append(list.Containers, &cri.Container{Id: id, PodSandboxId: c.pod, Metadata: c.config.GetMetadata(), State: c.state, Annotations: c.config.GetAnnotations()})
		}
	}
	return list, nil
}

func (s *standIn) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.pods[req.GetPodSandboxId()]
	if pod == nil {
		return nil, status.Errorf(codes.NotFound, "pod sandbox %q", req.GetPodSandboxId())
	}
	info, err := json.Marshal(map[string]any{"config": pod})
	return &cri.PodSandboxStatusResponse{
		Status: &cri.PodSandboxStatus{Id: req.GetPodSandboxId(), Metadata: pod.GetMetadata(), Labels: pod.GetLabels(), Annotations: pod.GetAnnotations()},
		Info:   map[string]string{"info": string(info)},
	}, err
}

func (s *standIn) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[req.GetContainerId()]
	if c == nil {
		return nil, status.Errorf(codes.NotFound, "container %q", req.GetContainerId())
	}
	info, err := json.Marshal(map[string]any{"sandboxID": c.pod, "config": c.config})
	return &cri.ContainerStatusResponse{
		Status: &cri.ContainerStatus{Id: req.GetContainerId(), Metadata: c.config.GetMetadata(), State: c.state, Annotations: c.config.GetAnnotations()},
		Info:   map[string]string{"info": string(info)},
	}, err
}

// GetContainerEvents has none to tell, until the connection ends.
func (*standIn) GetContainerEvents(_ *cri.GetEventsRequest, stream grpc.ServerStreamingServer[cri.ContainerEventResponse]) error {
	<-stream.Context().Done()
	return nil
}

// cgroupFiles are those that plugins of the soak want, and kubelet's values of them.
var cgroupFiles = map[string]string{"cpu.max": "50000 100000\n", "cpu.max.burst": "0\n", "cpu.idle": "0\n", "memory.high": "max\n", "memory.max": "max\n"}

func (s *standIn) makeCgroup(path string) error {
	dir := filepath.Join(s.cgroups, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, value := range cgroupFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) removeCgroup(path string) error {
	if path == "" {
		return nil // the pod is gone already
	}
	err := os.RemoveAll(filepath.Join(s.cgroups, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
