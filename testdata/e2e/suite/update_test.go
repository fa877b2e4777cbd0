package suite_test

import (
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestUpdateOfBurstingContainer lowers the quota below the burst, which the
// kernel refuses unless the burst goes down first.
func TestUpdateOfBurstingContainer(t *testing.T) {
	node.StartContainerd(t)
	proxy := node.StartProxy(t, node.QoS)
	id := node.DialCRI(t, node.ProxyEndpoint).RunContainer(t, map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"},
		&cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 100000})
	group := find(t, id)
	expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "50000")

	lower := &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 20000}
	if err := update(t, node.ContainerdEndpoint, id, lower); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Fatalf("without wasmproxy the kernel answered %v: this test proves nothing", err)
	}
	if err := update(t, node.ProxyEndpoint, id, lower); err != nil {
		t.Errorf("lowering the quota: %v", err)
	}
	expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", "20000")
	expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "20000") // no more than the quota

	if err := update(t, node.ProxyEndpoint, id, &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 80000}); err != nil {
		t.Errorf("raising the quota: %v", err)
	}
	expectGroupFile(t, group, "cpu/cpu.cfs_quota_us", "80000")
	expectGroupFile(t, group, "cpu/cpu.cfs_burst_us", "50000")
	expectNoFailures(t, proxy)
}

// TestUpdateOfIdleContainer sets the shares of a container that runs only when
// nothing else does, which the kernel refuses as long as it is one.
func TestUpdateOfIdleContainer(t *testing.T) {
	node.StartContainerd(t)
	proxy := node.StartProxy(t, node.QoS)
	id := node.DialCRI(t, node.ProxyEndpoint).RunContainer(t, map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}, &cri.LinuxContainerResources{CpuShares: 512})
	group := find(t, id)
	expectGroupFile(t, group, "cpu/cpu.idle", "1")

	shares := &cri.LinuxContainerResources{CpuShares: 256}
	if err := update(t, node.ContainerdEndpoint, id, shares); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Fatalf("without wasmproxy the kernel answered %v: this test proves nothing", err)
	}
	if err := update(t, node.ProxyEndpoint, id, shares); err != nil {
		t.Errorf("setting the shares: %v", err)
	}
	expectGroupFile(t, group, "cpu/cpu.idle", "1")
	status, err := node.DialCRI(t, node.ProxyEndpoint).ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: id})
	if got := status.GetStatus().GetResources().GetLinux().GetCpuShares(); got != 256 {
		t.Errorf("the runtime has %d shares, want 256 (%v)", got, err)
	}
	expectNoFailures(t, proxy)
}

func update(t *testing.T, endpoint, id string, resources *cri.LinuxContainerResources) error {
	t.Helper()
	_, err := node.DialCRI(t, endpoint).UpdateContainerResources(t.Context(),
		&cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources})
	return err
}
