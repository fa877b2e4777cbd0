package backend

import (
	"context"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func TestCountCPUs(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5, "": 0, "x": 0, "3-1": 0} {
		if got := countCPUs(list); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

func TestMachine(t *testing.T) {
	node := machine()
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

// What a runtime does not tell is left out, and what it tells is known.
func TestDescribe(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/runtime.sock")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, handlers{})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	conn, err := proxy.Dial(dir + "/runtime.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	b := New(conn, runtimeapi.NewRuntimeServiceClient(conn), pods.NewStore(), nil, nil, observe.Discard())
	var node crifield.Node
	for end := time.Now().Add(30 * time.Second); node.CgroupDriver == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b.Describe(t.Context()) // until the connection is up
		node = *b.Node.Load()
	}
	if node.CgroupDriver != "cgroupfs" || !slices.Equal(node.RuntimeHandlers, []string{"", "kata", "runc"}) || node.RuntimeName != "" {
		t.Errorf("the node is %+v", node)
	}
	want := []status.Handler{{}, {Name: "kata", UserNamespaces: true}, {Name: "runc", RecursiveReadOnlyMounts: true}}
	if got := b.Handlers(); !slices.Equal(got, want) {
		t.Errorf("the handlers are %+v, want %+v", got, want)
	}
}
