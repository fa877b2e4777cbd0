package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// memoryRuntime is cri-api's own fake runtime with what it lacks for the
// demonstration: it tells what it was asked, and has cgroups, as directories of
// plain files.
type memoryRuntime struct {
	*fake.RemoteRuntime
	cgroups string // root of the tree

	mu      sync.Mutex
	last    map[string]proto.Message                // the request that came last, by its type
	groups  map[string]string                       // directory by container id
	configs map[string]*runtimeapi.PodSandboxConfig // by pod sandbox id
}

func newMemoryRuntime(cgroups string) *memoryRuntime {
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

// remember keeps the request for the narrator.
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
func (r *memoryRuntime) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	resp, err := r.RemoteRuntime.RunPodSandbox(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs[resp.GetPodSandboxId()] = req.GetConfig()
	return resp, err
}

// PodSandboxStatus also has the verbose info that containerd gives: the
// sandbox's config, from which the proxy learns of pods older than itself.
func (r *memoryRuntime) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
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
func (r *memoryRuntime) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	resp, err := r.RemoteRuntime.CreateContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	group := filepath.Join(r.cgroups, req.GetSandboxConfig().GetLinux().GetCgroupParent(), resp.GetContainerId())
	r.mu.Lock()
	r.groups[resp.GetContainerId()] = group
	r.mu.Unlock()
	return resp, makeGroup(group, req.GetConfig().GetLinux().GetResources())
}

// UpdateContainerResources also writes the container's cgroup.
func (r *memoryRuntime) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	resp, err := r.RemoteRuntime.UpdateContainerResources(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp, writeResources(r.group(req.GetContainerId()), req.GetLinux())
}

// RemoveContainer also removes the container's cgroup.
func (r *memoryRuntime) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if err := os.RemoveAll(r.group(req.GetContainerId())); err != nil {
		return nil, err
	}
	return r.RemoteRuntime.RemoveContainer(ctx, req)
}

func (r *memoryRuntime) group(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.groups[id]
}

// makeGroup makes a cgroup with the files and values of a new one, and writes
// the resources to it.
func makeGroup(dir string, res *runtimeapi.LinuxContainerResources) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fresh := map[string]string{"cpu.max": "max 100000", "cpu.max.burst": "0", "cpu.idle": "0", "cpu.weight": "100", "memory.max": "max", "memory.high": "max"}
	if err := writeFiles(dir, fresh); err != nil {
		return err
	}
	return writeResources(dir, res)
}

// writeResources writes what runc would write for these resources on cgroup v2.
func writeResources(dir string, res *runtimeapi.LinuxContainerResources) error {
	files := map[string]string{}
	if quota := res.GetCpuQuota(); quota > 0 {
		files["cpu.max"] = fmt.Sprintf("%d %d", quota, max(res.GetCpuPeriod(), 100_000))
	}
	if shares := res.GetCpuShares(); shares > 0 {
		files["cpu.weight"] = strconv.FormatInt(1+(shares-2)*9999/262142, 10)
	}
	if limit := res.GetMemoryLimitInBytes(); limit > 0 {
		files["memory.max"] = strconv.FormatInt(limit, 10)
	}
	for file, value := range res.GetUnified() {
		files[file] = value
	}
	return writeFiles(dir, files)
}

func writeFiles(dir string, files map[string]string) error {
	for file, value := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(value+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
