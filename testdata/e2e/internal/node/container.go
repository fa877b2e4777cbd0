package node

import (
	"context"
	"errors"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

// Sleep is a command that does nothing until it is told to end. Without the trap CRI-O
// would wait for the rest of its caller's deadline.
var Sleep = []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait $!"}

// Workload is a pod with one container that sleeps, as kubelet would ask for it.
// It goes with the runtime, if nobody removes it before.
type Workload struct {
	Name        string // also its uid
	Annotations map[string]string
	Resources   *cri.LinuxContainerResources
}

// Running is a workload that runs.
type Running struct {
	Sandbox, Container string // ids
}

// Run runs a workload, whose image must have been pulled.
func (c CRI) Run(ctx context.Context, w Workload) (r Running, err error) {
	pod := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: w.Name, Namespace: "default", Uid: w.Name},
		Annotations: w.Annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    PodGroup(w.Name),
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: hostNetwork},
		},
	}
	sandbox, err := c.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return r, err
	}
	r.Sandbox = sandbox.PodSandboxId
	container, err := c.CreateContainer(ctx, &cri.CreateContainerRequest{
		PodSandboxId: r.Sandbox, SandboxConfig: pod,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "main"}, Command: Sleep,
			// CRI-O insists on the name that the user gave it.
			Image: &cri.ImageSpec{Image: image.Busybox, UserSpecifiedImage: image.Busybox},
			Linux: &cri.LinuxContainerConfig{
				Resources:       w.Resources,
				SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: hostNetwork},
			},
		},
	})
	if err != nil {
		return r, err
	}
	r.Container = container.ContainerId
	_, err = c.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: r.Container})
	return r, err
}

// Remove ends a workload and removes it.
func (c CRI) Remove(ctx context.Context, r Running) error {
	_, stopped := c.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: r.Container})
	_, removed := c.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: r.Container})
	return errors.Join(stopped, removed, c.removePod(ctx, r.Sandbox))
}

// PullBusybox pulls the image of workloads.
func (c CRI) PullBusybox(t testing.TB) {
	t.Helper()
	if _, err := c.PullImage(t.Context(), &cri.PullImageRequest{Image: &cri.ImageSpec{Image: image.Busybox}}); err != nil {
		t.Fatal(err)
	}
}

// RunContainer runs a workload and returns the container's id.
func (c CRI) RunContainer(t testing.TB, w Workload) (id string) {
	t.Helper()
	c.PullBusybox(t)
	r, err := c.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return r.Container
}

var hostNetwork = &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}
