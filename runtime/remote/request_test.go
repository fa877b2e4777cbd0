package remote_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// TestRequests holds what a hook server is sent, hook by hook, against the
// event that newEvent makes.
func TestRequests(t *testing.T) {
	podMeta := &runtimeapi.PodSandboxMetadata{Name: "web-0", Uid: "uid-1", Namespace: "shop", Attempt: 2}
	podAnnotations := map[string]string{"example.com/tier": "gold", "io.kubernetes.source": "api"}
	pod := &pb.PodSandboxHookRequest{
		PodMeta: podMeta, RuntimeHandler: "kata", CgroupParent: "/kubepods/pod1",
		Labels: map[string]string{"app": "web"}, Annotations: podAnnotations,
		Overhead: &runtimeapi.LinuxContainerResources{CpuQuota: 5000}, Resources: &runtimeapi.LinuxContainerResources{CpuShares: 512},
	}
	container := &pb.ContainerResourceHookRequest{
		PodMeta: podMeta, ContainerMeta: &pb.ContainerMetadata{Name: "app", Attempt: 3, Id: "c1"},
		ContainerAnnotations: map[string]string{"io.kubernetes.restartCount": "3"},
		ContainerResources: &runtimeapi.LinuxContainerResources{
			CpuPeriod: 100000, CpuQuota: 20000, CpuShares: 204, MemoryLimitInBytes: 1 << 30, OomScoreAdj: 900,
			CpusetCpus: "0-1", CpusetMems: "0", MemorySwapLimitInBytes: 2 << 30,
			HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB"}, {PageSize: "1GB", Limit: 1 << 30}},
			Unified:        map[string]string{"memory.high": "1000000"},
		},
		PodResources:   &runtimeapi.LinuxContainerResources{CpuShares: 512},
		PodAnnotations: podAnnotations, PodLabels: map[string]string{"app": "web"}, PodCgroupParent: "/kubepods/pod1",
		// The last of a name counts; what is not UTF-8 cannot be sent.
		ContainerEnvs: map[string]string{"PATH": "/bin", "EMPTY": ""},
	}
	want := map[abi.Hook]proto.Message{
		abi.PreRunPodSandbox: pod, abi.PostStopPodSandbox: pod,
		abi.PreCreateContainer: container, abi.PreStartContainer: container, abi.PostStartContainer: container,
		abi.PostStopContainer: container, abi.PreUpdateContainerResources: container,
	}
	if got := len(all()); got != len(want) {
		t.Errorf("the protocol has %d hooks, want %d", got, len(want))
	}
	for hook, want := range want {
		t.Run(hook.String(), func(t *testing.T) {
			got, method := requestOf(t, newEvent(hook))
			if method != hook.String() {
				t.Errorf("called %s", method)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("request differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSparseRequest sends what there is: container resources even where CRI has
// none, since hook servers rely on them, and no empty message elsewhere.
func TestSparseRequest(t *testing.T) {
	got, _ := requestOf(t, &event{hook: abi.PreCreateContainer})
	want := &pb.ContainerResourceHookRequest{
		PodMeta: &runtimeapi.PodSandboxMetadata{}, ContainerMeta: &pb.ContainerMetadata{}, ContainerResources: &runtimeapi.LinuxContainerResources{},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("request differs (-want +got):\n%s", diff)
	}
}

func requestOf(t *testing.T, ev *event) (req proto.Message, method string) {
	t.Helper()
	p := plugged(t, hookServer{
		pod: func(_ context.Context, m string, r *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
			req, method = r, m
			return &pb.PodSandboxHookResponse{}, nil
		},
		container: func(_ context.Context, m string, r *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
			req, method = r, m
			return &pb.ContainerResourceHookResponse{}, nil
		},
	})
	if changes, err := ask(t, p, ev); err != nil || len(changes) != 0 {
		t.Fatalf("empty response: %v, %v", changes, err)
	}
	return req, method
}

// TestMetadata wants the authority that hook servers always saw, and none of
// what kubelet sent with its call.
func TestMetadata(t *testing.T) {
	var got metadata.MD
	p := plugged(t, hookServer{pod: func(ctx context.Context, _ string, _ *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
		got, _ = metadata.FromIncomingContext(ctx)
		return &pb.PodSandboxHookResponse{}, nil
	}})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "secret")
	ev := newEvent(abi.PreRunPodSandbox)
	if err := p.Call(ctx, nil, ev, plugin.NewAdjustment(ev.hook, 2)); err != nil {
		t.Fatal(err)
	}
	if a := got.Get(":authority"); len(a) != 1 || a[0] != "localhost" {
		t.Errorf("authority %q, want localhost", a)
	}
	if a := got.Get("authorization"); len(a) != 0 {
		t.Errorf("the caller's metadata went to the hook server: %q", a)
	}
}

// TestManifest names the hooks that are configured and that the protocol has.
func TestManifest(t *testing.T) {
	p, err := remote.New(remote.Options{
		ID: "10-x", Endpoint: "/nowhere.sock",
		Hooks: abi.HookSetOf(abi.PreCreateContainer, abi.PostCreateContainer, abi.PreRunPodSandbox),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	want := []abi.ManifestHook{{Hook: "PreRunPodSandbox"}, {Hook: "PreCreateContainer"}}
	if diff := cmp.Diff(want, p.Manifest().Hooks); diff != "" {
		t.Errorf("hooks differ (-want +got):\n%s", diff)
	}
	if _, err := ask(t, p, newEvent(abi.PostCreateContainer)); err == nil {
		t.Error("a hook that the protocol lacks was answered")
	}
}
