package proxy_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	criclient "k8s.io/cri-client/pkg"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// TestKubelet plays a pod's life with kubelet's own client before Kubernetes's
// fake runtime, and compares what the runtime says with what arrives.
func TestKubelet(t *testing.T) {
	runtime := fake.NewFakeRemoteRuntime()
	runtime.ImageService.SetFakeImages([]string{"nginx", "pause"})
	backend := socketPath(t)
	if err := runtime.Start("unix://" + backend); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	path, _ := startProxy(t, proxy.Options{Backend: dial(t, backend)})

	ctx := withTimeout(t, time.Minute)
	kubelet := runtimeService(t, ctx, path)
	version, err := kubelet.Version(ctx, "v1")
	if err != nil || version.GetRuntimeName() != apitest.FakeRuntimeName {
		t.Errorf("version is %v, %v", version, err)
	}
	container := runContainer(t, ctx, kubelet)
	proxied := snapshot(t, ctx, path, container)
	if diff := cmp.Diff(snapshot(t, ctx, backend, container), proxied, protocmp.Transform()); diff != "" {
		t.Errorf("answers differ (-direct +proxied):\n%s", diff)
	}
	status := proxied["status"].(*runtimeapi.ContainerStatusResponse)
	if status.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || len(proxied["images"].([]*runtimeapi.Image)) != 2 {
		t.Errorf("the container is %v, images are %v", status, proxied["images"])
	}
	// The fake ends its event stream at once and without an error: so it is.
	if err := kubelet.GetContainerEvents(ctx, nil, nil); !errors.Is(err, io.EOF) {
		t.Errorf("the event stream ended with %v", err)
	}
	runtime.RuntimeService.InjectError("StopContainer", errors.New("told to fail"))
	if err := kubelet.StopContainer(ctx, container, 0); err == nil || err.Error() != "rpc error: code = Unknown desc = told to fail" {
		t.Errorf("stopping gave %v", err)
	}
}

func runContainer(t *testing.T, ctx context.Context, kubelet internalapi.RuntimeService) string {
	t.Helper()
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1"}}
	pod, err := kubelet.RunPodSandbox(ctx, config, "")
	if err != nil {
		t.Fatal(err)
	}
	container, err := kubelet.CreateContainer(ctx, pod, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "nginx"},
		Image:    &runtimeapi.ImageSpec{Image: "nginx"},
		Envs:     []*runtimeapi.KeyValue{{Key: "LATIN1", Value: []byte("\xff\xfe")}},
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := kubelet.StartContainer(ctx, container); err != nil {
		t.Fatal(err)
	}
	return container
}

// snapshot is all that kubelet's client can say of the runtime at path.
func snapshot(t *testing.T, ctx context.Context, path, container string) map[string]any {
	t.Helper()
	kubelet, images := runtimeService(t, ctx, path), imageService(t, ctx, path)
	said := make(map[string]any)
	var errs [4]error
	said["pods"], errs[0] = kubelet.ListPodSandbox(ctx, nil)
	said["containers"], errs[1] = kubelet.ListContainers(ctx, nil)
	list, err := images.ListImages(ctx, nil)
	slices.SortFunc(list, func(a, b *runtimeapi.Image) int { return strings.Compare(a.Id, b.Id) }) // the fake keeps a map
	said["images"], errs[2] = list, err
	said["status"], errs[3] = kubelet.ContainerStatus(ctx, container, true)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return said
}

func runtimeService(t *testing.T, ctx context.Context, path string) internalapi.RuntimeService {
	t.Helper()
	s, err := criclient.NewRemoteRuntimeServiceBuilder().
		WithEndpoint("unix://" + path).WithConnectionTimeout(10 * time.Second).WithUseStreaming(true).Build(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func imageService(t *testing.T, ctx context.Context, path string) internalapi.ImageManagerService {
	t.Helper()
	s, err := criclient.NewRemoteImageServiceBuilder().
		WithEndpoint("unix://" + path).WithConnectionTimeout(10 * time.Second).WithUseStreaming(true).Build(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}
