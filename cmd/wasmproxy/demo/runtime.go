package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/kubelet"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// memoryRuntime is cri-api's own fake runtime with what it lacks for the
// demonstration: it tells what it was asked, pulls any image, and has cgroups, as directories of
// plain files, in which containers use CPU time.
type memoryRuntime struct {
	*fake.RemoteRuntime
	cgroups *simulate.Cgroups
	ends    sync.WaitGroup // of all that writes cgroup files

	mu      sync.Mutex
	last    map[string]proto.Message                       // the request that came last, by its type
	groups  map[string]string                              // cgroup by container id
	limits  map[string]*runtimeapi.LinuxContainerResources // by container id
	configs map[string]*runtimeapi.PodSandboxConfig        // by pod sandbox id
	pulled  map[string]*runtimeapi.Image                   // by id
	running map[string]bool                                // containers, by id
	used    map[string]*cpuStat                            // by cgroup
	waited  map[string]pressure                            // by cgroup
}

func newMemoryRuntime(cgroups *simulate.Cgroups) *memoryRuntime {
	return &memoryRuntime{
		RemoteRuntime: fake.NewFakeRemoteRuntime(), cgroups: cgroups,
		last: map[string]proto.Message{}, groups: map[string]string{}, limits: map[string]*runtimeapi.LinuxContainerResources{},
		configs: map[string]*runtimeapi.PodSandboxConfig{},
		pulled:  map[string]*runtimeapi.Image{}, running: map[string]bool{}, used: map[string]*cpuStat{}, waited: map[string]pressure{},
	}
}

// start serves on a unix socket until ctx is done.
func (r *memoryRuntime) start(ctx context.Context, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("starting the runtime in memory: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(r.remember), grpc.WaitForHandlers(true))
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	go server.Serve(l) // ends with the server
	r.ends.Go(func() {
		<-ctx.Done()
		server.Stop()
	})
	r.ends.Go(func() { r.load(ctx) })
	return nil
}

// remember keeps the request for the printer.
func (r *memoryRuntime) remember(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if m, ok := req.(proto.Message); ok {
		r.mu.Lock()
		r.last[typeOf(m)] = m
		r.mu.Unlock()
	}
	return handle(ctx, req)
}

// received is the request of asked's type that came last.
func (r *memoryRuntime) received(asked proto.Message) proto.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[typeOf(asked)]
}

func typeOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }

// RunPodSandbox also keeps the config for a verbose status.
func (r *memoryRuntime) RunPodSandbox(
	ctx context.Context, req *runtimeapi.RunPodSandboxRequest,
) (*runtimeapi.RunPodSandboxResponse, error) {
	resp, err := r.RemoteRuntime.RunPodSandbox(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs[resp.GetPodSandboxId()] = req.GetConfig()
	return resp, err
}

// PodSandboxStatus also has the verbose info that containerd gives: the
// sandbox's config, from which the proxy learns of pods older than itself.
func (r *memoryRuntime) PodSandboxStatus(
	ctx context.Context, req *runtimeapi.PodSandboxStatusRequest,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	resp, err := r.RemoteRuntime.PodSandboxStatus(ctx, req)
	if err != nil || !req.GetVerbose() {
		return resp, err
	}
	r.mu.Lock()
	config := r.configs[req.GetPodSandboxId()]
	r.mu.Unlock()
	info, err := json.Marshal(map[string]any{"config": config})
	resp.Info = map[string]string{"info": string(info)}
	return resp, err
}

// CreateContainer also decides on the container's cgroup, as containerd does.
func (r *memoryRuntime) CreateContainer(
	ctx context.Context, req *runtimeapi.CreateContainerRequest,
) (*runtimeapi.CreateContainerResponse, error) {
	resp, err := r.RemoteRuntime.CreateContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	group := filepath.Join(req.GetSandboxConfig().GetLinux().GetCgroupParent(), resp.GetContainerId())
	r.mu.Lock()
	r.groups[resp.GetContainerId()] = group
	r.limits[resp.GetContainerId()] = &runtimeapi.LinuxContainerResources{}
	proto.Merge(r.limits[resp.GetContainerId()], req.GetConfig().GetLinux().GetResources())
	r.mu.Unlock()
	return resp, r.cgroups.Make(group, req.GetConfig().GetLinux().GetResources())
}

// StartContainer also has the container use CPU time.
func (r *memoryRuntime) StartContainer(
	ctx context.Context, req *runtimeapi.StartContainerRequest,
) (*runtimeapi.StartContainerResponse, error) {
	resp, err := r.RemoteRuntime.StartContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	id := req.GetContainerId()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[id] = true
	r.count(r.groups[id], cpuStat{})
	return resp, nil
}

// StopContainer also ends that.
func (r *memoryRuntime) StopContainer(
	ctx context.Context, req *runtimeapi.StopContainerRequest,
) (*runtimeapi.StopContainerResponse, error) {
	r.mu.Lock()
	delete(r.running, req.GetContainerId())
	r.mu.Unlock()
	return r.RemoteRuntime.StopContainer(ctx, req)
}

// UpdateContainerResources also writes the container's cgroup.
func (r *memoryRuntime) UpdateContainerResources(
	ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	resp, err := r.RemoteRuntime.UpdateContainerResources(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	proto.Merge(r.limits[req.GetContainerId()], req.GetLinux())
	return resp, r.cgroups.Update(r.groups[req.GetContainerId()], req.GetLinux())
}

// ContainerStatus also tells of the resources, as runtimes do.
func (r *memoryRuntime) ContainerStatus(
	ctx context.Context, req *runtimeapi.ContainerStatusRequest,
) (*runtimeapi.ContainerStatusResponse, error) {
	resp, err := r.RemoteRuntime.ContainerStatus(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	linux := proto.Clone(r.limits[req.GetContainerId()]).(*runtimeapi.LinuxContainerResources)
	resp.Status.Resources = &runtimeapi.ContainerResources{Linux: linux}
	return resp, nil
}

// RemoveContainer also removes the container's cgroup.
func (r *memoryRuntime) RemoveContainer(
	ctx context.Context, req *runtimeapi.RemoveContainerRequest,
) (*runtimeapi.RemoveContainerResponse, error) {
	id := req.GetContainerId()
	r.mu.Lock()
	group := r.groups[id]
	delete(r.running, id)
	delete(r.used, group)
	delete(r.waited, group)
	delete(r.limits, id)
	err := os.RemoveAll(filepath.Join(r.cgroups.Dir, group))
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r.RemoteRuntime.RemoveContainer(ctx, req)
}

// PullImage has any image be there.
func (r *memoryRuntime) PullImage(
	_ context.Context, req *runtimeapi.PullImageRequest,
) (*runtimeapi.PullImageResponse, error) {
	name := req.GetImage().GetImage()
	id := kubelet.ImageID(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulled[id] = &runtimeapi.Image{Id: id, RepoTags: []string{name}, Spec: &runtimeapi.ImageSpec{Image: name}}
	return &runtimeapi.PullImageResponse{ImageRef: id}, nil
}

// ImageStatus tells of an image that was pulled, by its name or id.
func (r *memoryRuntime) ImageStatus(
	_ context.Context, req *runtimeapi.ImageStatusRequest,
) (*runtimeapi.ImageStatusResponse, error) {
	name := req.GetImage().GetImage()
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimeapi.ImageStatusResponse{Image: cmp.Or(r.pulled[name], r.pulled[kubelet.ImageID(name)])}, nil
}
