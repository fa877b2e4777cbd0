package daemon_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
	"github.com/wasmproxy/wasmproxy/testdata/hookserver"
)

// hookServer sees what the chain before it has set, and overlays an annotation.
type hookServer struct {
	saw chan map[string]string
}

func (h *hookServer) PreCreateContainerHook(_ context.Context, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	h.saw <- req.GetContainerAnnotations()
	resp := &pb.ContainerResourceHookResponse{
		ContainerAnnotations: req.GetContainerAnnotations(), ContainerResources: req.GetContainerResources(), ContainerEnvs: req.GetContainerEnvs(),
	}
	if resp.ContainerAnnotations == nil {
		resp.ContainerAnnotations = map[string]string{}
	}
	resp.ContainerAnnotations["example.com/remote"] = "yes"
	return resp, nil
}

// serve serves on a socket until the returned function is called.
func (h *hookServer) serve(n *node) (stop func()) {
	l, err := net.Listen("unix", filepath.Join(n.dir, "hook.sock"))
	n.must(err)
	server := grpc.NewServer()
	hookserver.Register(server, h)
	go server.Serve(l)
	return server.Stop
}

// A hook server and a wasm plugin are one chain, in the order of their file
// names, though they come from two directories.
func TestRemoteAndWasmInOneChain(t *testing.T) {
	n := newNode(t)
	server := &hookServer{saw: make(chan map[string]string, 1)}
	stop := server.serve(n)
	n.put("10-quota.wasm", "quota")
	n.must(os.WriteFile(filepath.Join(n.config.HookDir, "20-koordlet.json"), []byte(`{
		"remote-endpoint": "`+n.dir+`//hook.sock", "failure-policy": "Fail",
		"runtime-hooks": ["PreCreateContainer", "PreRemoveRunPodSandbox"]}`), 0o644))
	n.start(daemon.Run)
	n.await("plugins active", "10-quota", "20-koordlet")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	if saw := receive(n, server.saw); saw["example.com/quota"] != "200000" {
		t.Errorf("the hook server saw annotations %v, not what the wasm plugin set", saw)
	}
	got := n.runtime.RuntimeService.Containers[id].Annotations
	if got["example.com/quota"] != "200000" || got["example.com/remote"] != "yes" {
		t.Errorf("the runtime got annotations %v", got)
	}

	stop()
	for range 10 { // its breaker does not open: it may be back at any moment
		if _, err := n.createContainer(t.Context(), pod, "second"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "is away") {
			t.Errorf("with its hook server away: %v", err)
		}
	}
	n.must(os.Remove(filepath.Join(n.config.HookDir, "20-koordlet.json")))
	n.await("plugin removed", "20-koordlet")
	n.await("plugins active", "10-quota")
	_, err = n.createContainer(t.Context(), pod, "third")
	n.must(err)
}
