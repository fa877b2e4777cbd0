package remote_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// TestServerThatLeavesAnUpdate: a server has given a container half of its quota. When kubelet sends the whole one again, a server
// that repeats that has it so, as with koord-runtime-proxy. One that does not mention the quota leaves its own value in place.
func TestServerThatLeavesAnUpdate(t *testing.T) {
	echo := echoing()
	for name, test := range map[string]struct {
		answer func(*pb.ContainerResourceHookResponse)
		want   int64
	}{
		"repeats the request":   {func(*pb.ContainerResourceHookResponse) {}, 100000},
		"sets its value again":  {func(r *pb.ContainerResourceHookResponse) { r.ContainerResources.CpuQuota = 50000 }, 50000},
		"has no resources":      {func(r *pb.ContainerResourceHookResponse) { r.ContainerResources = nil }, 50000},
		"names another one":     {func(r *pb.ContainerResourceHookResponse) { r.ContainerResources.CpuQuota = 70000 }, 70000},
		"does not name a quota": {func(r *pb.ContainerResourceHookResponse) { r.ContainerResources.CpuQuota = 0 }, 50000},
	} {
		t.Run(name, func(t *testing.T) {
			last := false
			p := newProxy(plugged(t, hookServer{pod: echo.pod,
				container: func(ctx context.Context, method string, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
					resp, err := echo.container(ctx, method, req)
					switch {
					case method == abi.PreCreateContainer.String():
						resp.ContainerResources.CpuQuota = 50000
					case last:
						test.answer(resp)
					}
					return resp, err
				}}))
			p.forward(t, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
				Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "shop", Uid: "uid"},
			}}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod"})
			p.forward(t, "CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: "pod", Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "app"},
				Linux:    &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 100000, CpuShares: 1024}},
			}}, &runtimeapi.CreateContainerResponse{ContainerId: "container"})
			update := func(r *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
				req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "container", Linux: r}
				p.forward(t, "UpdateContainerResources", req, &runtimeapi.UpdateContainerResourcesResponse{})
				return req.GetLinux()
			}
			cpuset := &runtimeapi.LinuxContainerResources{CpusetCpus: "1"}
			if got := update(proto.CloneOf(cpuset)); !proto.Equal(got, cpuset) {
				t.Errorf("an update of the cpuset became %v", got)
			}
			last = true
			resize := &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 100000, CpuShares: 1024, MemoryLimitInBytes: 1 << 30}
			if got := update(resize); got.GetCpuQuota() != test.want {
				t.Errorf("the runtime got a quota of %d, want %d", got.GetCpuQuota(), test.want)
			}
		})
	}
}
