package suite_test

import (
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestUpdateOfBurstingContainer lowers the quota below the burst, which the
// kernel refuses unless the burst goes down first.
func TestUpdateOfBurstingContainer(t *testing.T) {
	runtime := node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS)
	id := runBursting(t)
	expectRefused(t, update(t, runtime.Endpoint, id, quota(20000)))
	expectBurstCut(t, id)
	expectNoFailures(t, proxy)
}

// TestUpdateOfIdleContainer sets the shares of a container that runs only when
// nothing else does, which the kernel refuses as long as it is one. systemd makes it another first.
func TestUpdateOfIdleContainer(t *testing.T) {
	runtime := node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS)
	id := runIdle(t)
	if err := update(t, runtime.Endpoint, id, &cri.LinuxContainerResources{CpuShares: 256}); node.CgroupDriver() != node.Systemd {
		expectRefused(t, err)
	} else if idle := cgroupfs.Check(find(t, id), "cpu/cpu.idle", "1"); err != nil || idle == nil {
		t.Fatalf("without wasmproxy the container is still idle (%v): this test proves nothing", err)
	}
	expectIdleKept(t, id)
	expectNoFailures(t, proxy)
}

// TestUpdateAfterKill updates both after the proxy that made them so was killed.
// The next one knows of them only what the runtime and the kernel tell.
func TestUpdateAfterKill(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS)
	bursting, idle := runBursting(t), runIdle(t)
	proxy.Kill()
	proxy.Start(t)
	expectBurstCut(t, bursting)
	expectIdleKept(t, idle)
	expectNoFailures(t, proxy)
}

func runBursting(t *testing.T) (id string) {
	t.Helper()
	id = node.DialCRI(t, node.RuntimeKind().ProxyEndpoint).RunContainer(t, node.Workload{
		Name: "bursting", Annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"}, Resources: quota(100000),
	})
	expectGroupFile(t, find(t, id), "cpu/cpu.cfs_burst_us", "50000")
	return id
}

func runIdle(t *testing.T) (id string) {
	t.Helper()
	id = node.DialCRI(t, node.RuntimeKind().ProxyEndpoint).RunContainer(t, node.Workload{
		Name: "idle", Annotations: map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}, Resources: &cri.LinuxContainerResources{CpuShares: 512},
	})
	expectGroupFile(t, find(t, id), "cpu/cpu.idle", "1")
	return id
}

// expectRefused demands that the kernel refuses an update that goes past wasmproxy.
func expectRefused(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Fatalf("without wasmproxy the kernel answered %v: this test proves nothing", err)
	}
}

// expectBurstCut lowers the quota of a bursting container, and raises it again.
func expectBurstCut(t *testing.T, id string) {
	t.Helper()
	group := find(t, id)
	if err := update(t, node.RuntimeKind().ProxyEndpoint, id, quota(20000)); err != nil {
		t.Errorf("lowering the quota: %v", err)
	}
	expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", "20000")
	expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "20000") // no more than the quota

	if err := update(t, node.RuntimeKind().ProxyEndpoint, id, quota(80000)); err != nil {
		t.Errorf("raising the quota: %v", err)
	}
	expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", "80000")
	expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "50000")
}

// expectIdleKept sets the shares of an idle container, which stays idle.
func expectIdleKept(t *testing.T, id string) {
	t.Helper()
	runtime := node.RuntimeKind()
	if err := update(t, runtime.ProxyEndpoint, id, &cri.LinuxContainerResources{CpuShares: 256}); err != nil {
		t.Errorf("setting the shares: %v", err)
	}
	expectGroupFile(t, find(t, id), "cpu/cpu.idle", "1")
	if runtime.NoResources {
		return
	}
	status, err := node.DialCRI(t, runtime.ProxyEndpoint).ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: id})
	if got := status.GetStatus().GetResources().GetLinux().GetCpuShares(); got != 256 {
		t.Errorf("the runtime has %d shares, want 256 (%v)", got, err)
	}
}

func quota(quota int64) *cri.LinuxContainerResources {
	return &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: quota}
}

func update(t *testing.T, endpoint, id string, resources *cri.LinuxContainerResources) error {
	t.Helper()
	_, err := node.DialCRI(t, endpoint).UpdateContainerResources(t.Context(),
		&cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources})
	return err
}
