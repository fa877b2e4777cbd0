package koord_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// An answer answers a hook: the response, or nil for an empty one.
type answer func(ctx context.Context, name string, req proto.Message) (proto.Message, error)

// hookServer is a hook server of Koordinator's published types. It remembers
// what it was told, and answers as the test wants.
type hookServer struct {
	hook.UnimplementedRuntimeHookServiceServer
	socket string
	server *grpc.Server
	answer answer

	mu   sync.Mutex
	told []told
}

// told is one hook that a server was told of.
type told struct {
	hook string // name, as in runtime-hooks
	req  proto.Message
}

// allHooks are the hooks of the protocol.
var allHooks = []string{
	"PreRunPodSandbox", "PostStopPodSandbox", "PreCreateContainer", "PreStartContainer", "PostStartContainer",
	"PostStopContainer", "PreUpdateContainerResources",
}

func (s *hookServer) start() error {
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		return err
	}
	s.server = grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20))
	hook.RegisterRuntimeHookServiceServer(s.server, s)
	go s.server.Serve(l)
	return nil
}

func (s *hookServer) stop() { s.server.Stop() }

// toldOf returns the hooks of a name that the server was told of, the oldest first.
func (s *hookServer) toldOf(name string) []told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.told), func(t told) bool { return t.hook != name })
}

// lastTold returns the newest request of a hook; nil if there is none.
func lastTold[M proto.Message](s *hookServer, name string) (m M) {
	if all := s.toldOf(name); len(all) > 0 {
		m = all[len(all)-1].req.(M)
	}
	return m
}

// serve notes a request and answers it.
func serve[Resp proto.Message](ctx context.Context, s *hookServer, name string, req proto.Message, empty Resp) (Resp, error) {
	s.mu.Lock()
	s.told = append(s.told, told{name, proto.Clone(req)})
	s.mu.Unlock()
	if s.answer == nil {
		return empty, nil
	}
	resp, err := s.answer(ctx, name, req)
	if r, ok := resp.(Resp); ok && err == nil {
		return r, nil
	}
	return empty, err
}

type (
	podRequest        = hook.PodSandboxHookRequest
	podResponse       = hook.PodSandboxHookResponse
	containerRequest  = hook.ContainerResourceHookRequest
	containerResponse = hook.ContainerResourceHookResponse
)

func (s *hookServer) PreRunPodSandboxHook(ctx context.Context, req *podRequest) (*podResponse, error) {
	return serve(ctx, s, "PreRunPodSandbox", req, &podResponse{})
}

func (s *hookServer) PostStopPodSandboxHook(ctx context.Context, req *podRequest) (*podResponse, error) {
	return serve(ctx, s, "PostStopPodSandbox", req, &podResponse{})
}

func (s *hookServer) PreCreateContainerHook(ctx context.Context, req *containerRequest) (*containerResponse, error) {
	return serve(ctx, s, "PreCreateContainer", req, &containerResponse{})
}

func (s *hookServer) PreStartContainerHook(ctx context.Context, req *containerRequest) (*containerResponse, error) {
	return serve(ctx, s, "PreStartContainer", req, &containerResponse{})
}

func (s *hookServer) PostStartContainerHook(ctx context.Context, req *containerRequest) (*containerResponse, error) {
	return serve(ctx, s, "PostStartContainer", req, &containerResponse{})
}

func (s *hookServer) PostStopContainerHook(ctx context.Context, req *containerRequest) (*containerResponse, error) {
	return serve(ctx, s, "PostStopContainer", req, &containerResponse{})
}

func (s *hookServer) PreUpdateContainerResourcesHook(ctx context.Context, req *containerRequest) (*containerResponse, error) {
	return serve(ctx, s, "PreUpdateContainerResources", req, &containerResponse{})
}

// answering gives one response to every hook of its kind.
func answering(resp proto.Message) answer {
	return func(context.Context, string, proto.Message) (proto.Message, error) { return resp, nil }
}

// refusing fails every hook.
func refusing(err error) answer {
	return func(context.Context, string, proto.Message) (proto.Message, error) { return nil, err }
}

// hanging answers the hook of that name when the caller has gone, and others at once.
func hanging(name string) answer {
	return func(ctx context.Context, hook string, _ proto.Message) (proto.Message, error) {
		if hook == name {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	}
}

// echoing answers with what it was sent, as koordlet does if it has nothing to change.
func echoing(_ context.Context, _ string, req proto.Message) (proto.Message, error) {
	switch r := req.(type) {
	case *podRequest:
		return &podResponse{Labels: r.Labels, Annotations: r.Annotations, CgroupParent: r.CgroupParent, Resources: r.Resources}, nil
	case *containerRequest:
		return &containerResponse{
			ContainerAnnotations: r.ContainerAnnotations, ContainerResources: r.ContainerResources,
			PodCgroupParent: r.PodCgroupParent, ContainerEnvs: r.ContainerEnvs,
		}, nil
	}
	return nil, nil
}

// registration is a file of hookserver.d for a server, as koordlet writes it.
func registration(endpoint, policy string, hooks ...string) string {
	return `{"remote-endpoint": "` + endpoint + `", "failure-policy": "` + policy + `", "runtime-hooks": ["` + strings.Join(hooks, `", "`) + `"]}`
}
