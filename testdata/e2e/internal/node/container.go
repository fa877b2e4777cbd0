package node

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

// RunContainer runs a pod with these annotations and one container, as kubelet
// would. Both go with containerd.
func (c CRI) RunContainer(t testing.TB, annotations map[string]string, resources *cri.LinuxContainerResources) (id string) {
	t.Helper()
	pod := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: "updated", Namespace: "default", Uid: "updated"},
		Annotations: annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/kubepods/burstable/podupdated",
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: hostNetwork},
		},
	}
	spec := &cri.ImageSpec{Image: image.Busybox}
	if _, err := c.PullImage(t.Context(), &cri.PullImageRequest{Image: spec}); err != nil {
		t.Fatal(err)
	}
	sandbox, err := c.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		t.Fatal(err)
	}
	container, err := c.CreateContainer(t.Context(), &cri.CreateContainerRequest{
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
	if _, err := c.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: container.ContainerId}); err != nil {
		t.Fatal(err)
	}
	return container.ContainerId
}

var hostNetwork = &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}
