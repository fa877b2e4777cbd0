package daemon_test

import (
	"context"
	"fmt"
	"path"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// The last plugin is removed, and more updates are queued than the runtime gets at a time. Each of them names the period that
// the store has of its container; after that the store is empty.
func TestQueuedUpdatesHaveTheStore(t *testing.T) {
	const containers = 20
	n := bypassable(t)
	updates, release := make(chan *runtimeapi.LinuxContainerResources, containers), make(chan struct{})
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if path.Base(info.FullMethod) == "UpdateContainerResources" {
			updates <- req.(*runtimeapi.UpdateContainerResourcesRequest).Linux
			<-release
		}
		return handler(ctx, req)
	})
	n.config.StateDir = n.dir + "/state"
	n.put("20-quota.wasm", "quota")
	n.start(daemon.RunWithoutStartFills)
	n.awaitActive("20-quota")
	n.awaitSocket()
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	for i := range containers {
		_, err := n.kubelet.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: pod, SandboxConfig: podNamed("web"),
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: podName(i)}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
				Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: 50000, CpuPeriod: 50000}},
			},
		})
		n.must(err)
	}
	known := func() int {
		s, err := n.admin().Status(t.Context())
		n.must(err)
		return s.Store.Containers
	}
	n.remove("20-quota.wasm")
	n.await("no plugins")
	first := receive(n, updates)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got := known(); got != containers {
			t.Errorf("the store has %d containers while updates are queued, want %d", got, containers)
			break
		}
	}
	close(release)
	for i := range containers {
		if i > 0 {
			first = receive(n, updates)
		}
		if first.GetCpuQuota() != 50000 || first.GetCpuPeriod() != 50000 {
			t.Errorf("update %d has quota %d and period %d, want 50000 of both", i, first.GetCpuQuota(), first.GetCpuPeriod())
		}
	}
	n.eventually("the number of containers that the store has", "0", func() string { return fmt.Sprint(known()) })
}
