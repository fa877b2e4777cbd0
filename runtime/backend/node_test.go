package backend

import (
	"context"
	"net"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func TestMachine(t *testing.T) {
	var node crifield.Node
	machine(&node)
	if node.CPUs < runtime.NumCPU() || node.Memory < 1<<20 || len(node.Kernel) < 3 {
		t.Errorf("the node is %+v", node)
	}
}

// handlers is a runtime with two handlers, which does not tell its version.
type handlers struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (handlers) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{
		{Name: "runc", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}}, {Name: ""},
		{Name: "kata", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}},
	}}, nil
}

func (handlers) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// serve serves a runtime with two handlers at a path, until the test ends or the server is stopped.
func serve(t *testing.T, path string) *grpc.Server {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, handlers{})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return server
}

// connect returns a Backend of the runtime at a path.
func connect(t *testing.T, path string) *Backend {
	t.Helper()
	conn, err := proxy.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return New(conn, runtimeapi.NewRuntimeServiceClient(conn), pods.NewStore(), nil, nil, observe.Discard())
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir + "/runtime.sock"
}

// What a runtime does not tell is left out, what it tells is known, and stays known while the runtime is down: calls that come
// before it was asked again meet plugins that know where they are.
func TestDescribe(t *testing.T) {
	path := socketPath(t)
	server, b := serve(t, path), connect(t, path)
	var node crifield.Node
	known := func() bool { return node.CgroupDriver != "" && len(node.RuntimeHandlers) > 0 }
	for end := time.Now().Add(time.Minute); !known() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b.Describe(t.Context()) // until the connection is up, and each call was answered
		node = *b.Node.Load()
	}
	if node.CgroupDriver != "cgroupfs" || !slices.Equal(node.RuntimeHandlers, []string{"", "kata", "runc"}) || node.RuntimeName != "" {
		t.Errorf("the node is %+v", node)
	}
	want := []status.Handler{{}, {Name: "kata", UserNamespaces: true}, {Name: "runc", RecursiveReadOnlyMounts: true}}
	if got := b.Handlers(); !slices.Equal(got, want) {
		t.Errorf("the handlers are %+v, want %+v", got, want)
	}
	server.Stop()
	b.Describe(t.Context())
	if got := *b.Node.Load(); !reflect.DeepEqual(got, node) {
		t.Errorf("without the runtime the node is %+v, and it was %+v", got, node)
	}
}

// What the kernel says is known before the runtime is asked.
func TestMachineIsKnownAtOnce(t *testing.T) {
	b := New(up{}, nil, pods.NewStore(), nil, nil, observe.Discard())
	if got := b.Node.Load(); got.Memory == 0 || got.CPUs == 0 || got.Kernel == "" {
		t.Errorf("the node is %+v", got)
	}
}

// slow is a runtime whose first call of Version ends with an error, after it was told to.
type slow struct {
	Client
	asked, end chan struct{}
	calls      atomic.Int32
}

func (s *slow) Version(context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption) (*runtimeapi.VersionResponse, error) {
	if s.calls.Add(1) == 1 {
		close(s.asked)
		<-s.end
		return nil, context.DeadlineExceeded
	}
	return &runtimeapi.VersionResponse{RuntimeName: "containerd"}, nil
}

func (*slow) RuntimeConfig(
	context.Context, *runtimeapi.RuntimeConfigRequest, ...grpc.CallOption,
) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{}, nil
}

func (*slow) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{}, nil
}

// What the runtime did not answer is asked again, though it has answered the rest.
func TestDescribeAgain(t *testing.T) {
	client := &slow{asked: make(chan struct{}), end: make(chan struct{})}
	close(client.end)
	b := New(up{}, client, pods.NewStore(), nil, nil, observe.Discard())
	for range 3 {
		b.DescribeChanged(t.Context())
	}
	if got := b.Node.Load().RuntimeName; got != "containerd" || client.calls.Load() != 2 {
		t.Errorf("the runtime is %q after %d calls", got, client.calls.Load())
	}
}

// hanging is a runtime that does not answer.
type hanging struct{ Client }

func (hanging) Version(ctx context.Context, _ *runtimeapi.VersionRequest, _ ...grpc.CallOption) (*runtimeapi.VersionResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What is said of a runtime that hangs is how long it was waited for.
func TestVersionOfHangingRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(up{}, hanging{}, pods.NewStore(), nil, nil, observe.Discard())
		if _, err := b.Version(t.Context()); err == nil || err.Error() != "the smallest call takes longer than 2s" {
			t.Errorf("the error is %v", err)
		}
	})
}

// Of two who ask at once, the one that gets no answer leaves what the other one gets.
func TestDescribeAtOnce(t *testing.T) {
	client := &slow{asked: make(chan struct{}), end: make(chan struct{})}
	b := New(up{}, client, pods.NewStore(), nil, nil, observe.Discard())
	first, second := make(chan struct{}), make(chan struct{})
	describe := func(done chan struct{}) {
		defer close(done)
		b.Describe(t.Context())
	}
	go describe(first)
	<-client.asked
	go describe(second)
	select {
	case <-second:
	case <-time.After(100 * time.Millisecond): // it waits for the first
	}
	close(client.end)
	<-first
	<-second
	if got := b.Node.Load().RuntimeName; got != "containerd" {
		t.Errorf("the runtime is %q", got)
	}
}
