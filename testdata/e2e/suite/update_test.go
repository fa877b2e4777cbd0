package suite_test

import (
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestUpdateOfBurstingContainer lowers the quota below the burst, which the
// kernel refuses unless the burst goes down first.
func TestUpdateOfBurstingContainer(t *testing.T) {
	node.StartContainerd(t)
	proxy := node.StartProxy(t, node.QoS)
	id := runContainer(t, map[string]string{"qos.wasmproxy.io/cpu-burst": "50000"},
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
	id := runContainer(t, map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}, &cri.LinuxContainerResources{CpuShares: 512})
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

// runContainer runs a pod with these annotations and one container through wasmproxy, as kubelet would.
func runContainer(t *testing.T, annotations map[string]string, resources *cri.LinuxContainerResources) (id string) {
	t.Helper()
	client := node.DialCRI(t, node.ProxyEndpoint)
	pod := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: "updated", Namespace: "default", Uid: "updated"},
		Annotations: annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/kubepods/burstable/podupdated",
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: hostNetwork},
		},
	}
	spec := &cri.ImageSpec{Image: image.Busybox}
	if _, err := client.PullImage(t.Context(), &cri.PullImageRequest{Image: spec}); err != nil {
		t.Fatal(err)
	}
	sandbox, err := client.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.CreateContainer(t.Context(), &cri.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: pod,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "main"}, Image: spec, Command: []string{"sleep", "1000"},
			Linux: &cri.LinuxContainerConfig{
				Resources:       resources,
				SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: hostNetwork},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: container.ContainerId}); err != nil {
		t.Fatal(err)
	}
	return container.ContainerId
}

var hostNetwork = &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}

func update(t *testing.T, endpoint, id string, resources *cri.LinuxContainerResources) error {
	t.Helper()
	_, err := node.DialCRI(t, endpoint).UpdateContainerResources(t.Context(),
		&cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources})
	return err
}
