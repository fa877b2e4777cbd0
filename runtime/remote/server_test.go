package remote_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
	"github.com/wasmproxy/wasmproxy/testdata/hookserver"
)

// hookServer is a hook server whose answers a test decides.
type hookServer struct {
	pod       func(ctx context.Context, method string, req *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error)
	container func(ctx context.Context, method string, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error)
}

func (s hookServer) PreRunPodSandboxHook(ctx context.Context, req *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
	return s.pod(ctx, "PreRunPodSandbox", req)
}

func (s hookServer) PostStopPodSandboxHook(ctx context.Context, req *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
	return s.pod(ctx, "PostStopPodSandbox", req)
}

func (s hookServer) PreCreateContainerHook(ctx context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return s.container(ctx, "PreCreateContainer", req)
}

func (s hookServer) PreStartContainerHook(ctx context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return s.container(ctx, "PreStartContainer", req)
}

func (s hookServer) PostStartContainerHook(ctx context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return s.container(ctx, "PostStartContainer", req)
}

func (s hookServer) PostStopContainerHook(ctx context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return s.container(ctx, "PostStopContainer", req)
}

func (s hookServer) PreUpdateContainerResourcesHook(ctx context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return s.container(ctx, "PreUpdateContainerResources", req)
}

// echoing answers every hook with what it was sent.
func echoing() hookServer {
	return hookServer{
		pod: func(_ context.Context, _ string, req *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
			return &pb.PodSandboxHookResponse{
				Labels: req.Labels, Annotations: req.Annotations, CgroupParent: req.CgroupParent, Resources: req.Resources,
			}, nil
		},
		container: func(_ context.Context, _ string, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
			return &pb.ContainerResourceHookResponse{
				ContainerAnnotations: req.ContainerAnnotations, ContainerResources: req.ContainerResources,
				PodCgroupParent: req.PodCgroupParent, ContainerEnvs: req.ContainerEnvs,
			}, nil
		},
	}
}

// answering gives one response to every container hook.
func answering(resp *pb.ContainerResourceHookResponse) hookServer {
	return hookServer{container: func(context.Context, string, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		return resp, nil
	}}
}

// serve runs a hook server on the socket until stop is called.
func serve(t testing.TB, socket string, s hookServer) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20))
	hookserver.Register(server, s)
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(listener) }()
	stop = func() { server.Stop(); <-done }
	t.Cleanup(stop)
	return stop
}

// connect returns a plugin that asks the hook server on the socket.
func connect(t testing.TB, socket string) *remote.Plugin {
	t.Helper()
	p, err := remote.New(remote.Options{ID: "koordlet", Endpoint: socket, Hooks: remote.Hooks()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// plugged is a plugin that asks s.
func plugged(t testing.TB, s hookServer) *remote.Plugin {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "hook.sock")
	serve(t, socket, s)
	return connect(t, socket)
}

// ask calls the plugin about ev and returns what it wants changed.
func ask(t testing.TB, p plugin.Plugin, ev plugin.Event) ([]plugin.Change, error) {
	t.Helper()
	adj := plugin.NewAdjustment(ev.Hook(), 2)
	err := p.Call(t.Context(), nil, ev, adj)
	return adj.Changes(), err
}

// all are the hooks of the protocol.
func all() (hooks []abi.Hook) {
	for _, info := range abi.Hooks {
		if remote.Hooks().Has(info.Hook) {
			hooks = append(hooks, info.Hook)
		}
	}
	return hooks
}
