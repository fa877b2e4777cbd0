package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

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

	mu         sync.Mutex
	last       map[string]proto.Message                // the request that came last, by its type
	containers map[string]*memoryContainer             // by id
	configs    map[string]*runtimeapi.PodSandboxConfig // by pod sandbox id
	pulled     map[string]*runtimeapi.Image            // by id
	used       map[string]*cpuStat                     // by cgroup
	waited     map[string]pressure                     // by cgroup
}

// memoryContainer is what the fake runtime does not keep of a container.
type memoryContainer struct {
	group   string
	limits  *runtimeapi.LinuxContainerResources
	running bool
}

func newMemoryRuntime(cgroups *simulate.Cgroups) *memoryRuntime {
	return &memoryRuntime{
		RemoteRuntime: fake.NewFakeRemoteRuntime(), cgroups: cgroups,
		last: map[string]proto.Message{}, containers: map[string]*memoryContainer{}, configs: map[string]*runtimeapi.PodSandboxConfig{},
		pulled: map[string]*runtimeapi.Image{}, used: map[string]*cpuStat{}, waited: map[string]pressure{},
	}
}

// start serves on a unix socket until ctx is done.
func (r *memoryRuntime) start(ctx context.Context, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("starting the runtime in memory: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(r.answer), grpc.WaitForHandlers(true))
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	go server.Serve(l) // ends with the server
	r.ends.Go(func() {
		<-ctx.Done()
		server.Stop()
	})
	r.ends.Go(func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			select {
			case <-second.C:
				r.use()
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// answer keeps the request for the printer, and does to a call that has succeeded what other runtimes do besides.
func (r *memoryRuntime) answer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if m, ok := req.(proto.Message); ok {
		r.mu.Lock()
		r.last[typeOf(m)] = m
		r.mu.Unlock()
	}
	resp, err := handle(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req := req.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		r.configs[resp.(*runtimeapi.RunPodSandboxResponse).PodSandboxId] = req.GetConfig()
	case *runtimeapi.PodSandboxStatusRequest: // with what containerd tells: the proxy learns of pods older than itself from that
		if req.GetVerbose() {
			info, err := json.Marshal(map[string]any{"config": r.configs[req.GetPodSandboxId()]})
			resp.(*runtimeapi.PodSandboxStatusResponse).Info = map[string]string{"info": string(info)}
			return resp, err
		}
	case *runtimeapi.CreateContainerRequest:
		id := resp.(*runtimeapi.CreateContainerResponse).GetContainerId()
		parent := req.GetSandboxConfig().GetLinux().GetCgroupParent()
		c := &memoryContainer{group: path.Join(parent, id), limits: &runtimeapi.LinuxContainerResources{}}
		r.containers[id] = c
		proto.Merge(c.limits, req.GetConfig().GetLinux().GetResources())
		return resp, r.cgroups.Make(c.group, req.GetConfig().GetLinux().GetResources())
	case *runtimeapi.StartContainerRequest:
		c := r.containers[req.GetContainerId()]
		c.running = true
		r.count(c.group, cpuStat{})
	case *runtimeapi.StopContainerRequest:
		r.containers[req.GetContainerId()].running = false
	case *runtimeapi.UpdateContainerResourcesRequest:
		c := r.containers[req.GetContainerId()]
		proto.Merge(c.limits, req.GetLinux())
		return resp, r.cgroups.Update(c.group, req.GetLinux())
	case *runtimeapi.ContainerStatusRequest:
		if c := r.containers[req.GetContainerId()]; c != nil {
			linux := proto.Clone(c.limits).(*runtimeapi.LinuxContainerResources)
			resp.(*runtimeapi.ContainerStatusResponse).Status.Resources = &runtimeapi.ContainerResources{Linux: linux}
		}
	case *runtimeapi.RemoveContainerRequest:
		group := r.containers[req.GetContainerId()].group
		delete(r.containers, req.GetContainerId())
		delete(r.used, group)
		delete(r.waited, group)
		return resp, os.RemoveAll(filepath.Join(r.cgroups.Dir, group))
	case *runtimeapi.PullImageRequest: // any image is there
		name := req.GetImage().GetImage()
		id := kubelet.ImageID(name)
		r.pulled[id] = &runtimeapi.Image{Id: id, RepoTags: []string{name}, Spec: &runtimeapi.ImageSpec{Image: name}}
		resp.(*runtimeapi.PullImageResponse).ImageRef = id
	case *runtimeapi.ImageStatusRequest: // by name or id
		name := req.GetImage().GetImage()
		resp.(*runtimeapi.ImageStatusResponse).Image = cmp.Or(r.pulled[name], r.pulled[kubelet.ImageID(name)])
	}
	return resp, nil
}

// received is the request of asked's type that came last.
func (r *memoryRuntime) received(asked proto.Message) proto.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[typeOf(asked)]
}

func typeOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }
