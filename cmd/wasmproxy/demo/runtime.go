package demo

import (
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

	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// memoryRuntime is cri-api's own fake runtime with what it lacks for the
// demonstration: it tells what it was asked, and has cgroups, as directories of
// plain files.
type memoryRuntime struct {
	*fake.RemoteRuntime
	cgroups *simulate.Cgroups

	mu      sync.Mutex
	last    map[string]proto.Message                // the request that came last, by its type
	groups  map[string]string                       // cgroup by container id
	configs map[string]*runtimeapi.PodSandboxConfig // by pod sandbox id
}

func newMemoryRuntime(cgroups *simulate.Cgroups) *memoryRuntime {
	return &memoryRuntime{
		RemoteRuntime: fake.NewFakeRemoteRuntime(), cgroups: cgroups,
		last: map[string]proto.Message{}, groups: map[string]string{}, configs: map[string]*runtimeapi.PodSandboxConfig{},
	}
}

// start serves on a unix socket until ctx is done.
func (r *memoryRuntime) start(ctx context.Context, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("starting the runtime in memory: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(r.remember))
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	context.AfterFunc(ctx, server.Stop)
	go server.Serve(l) // ends with the server
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
	r.mu.Unlock()
	return resp, r.cgroups.Make(group, req.GetConfig().GetLinux().GetResources())
}

// UpdateContainerResources also writes the container's cgroup.
func (r *memoryRuntime) UpdateContainerResources(
	ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	resp, err := r.RemoteRuntime.UpdateContainerResources(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp, r.cgroups.Update(r.group(req.GetContainerId()), req.GetLinux())
}

// RemoveContainer also removes the container's cgroup.
func (r *memoryRuntime) RemoveContainer(
	ctx context.Context, req *runtimeapi.RemoveContainerRequest,
) (*runtimeapi.RemoveContainerResponse, error) {
	if err := os.RemoveAll(filepath.Join(r.cgroups.Dir, r.group(req.GetContainerId()))); err != nil {
		return nil, err
	}
	return r.RemoteRuntime.RemoveContainer(ctx, req)
}

func (r *memoryRuntime) group(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.groups[id]
}
