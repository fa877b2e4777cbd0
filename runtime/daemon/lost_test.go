package daemon_test

import (
	"context"
	"net"
	"path"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// The runtime starts a container, and the caller goes away before the answer, as a kubelet that is
// killed does. Nobody starts the container again, so the proxy has to ask what became of it.
func TestStartWhoseCallerGoesAway(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = n.dir + "/admin.sock"
	started := n.holdAnswers("StartContainer")
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.await("plugins active", "10-quota")
	n.awaitSocket()
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := n.kubelet.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); status.Code(err) != codes.Canceled {
		t.Fatalf("the call ended with %v, want Canceled", err)
	}
	n.await("store filled", "containers=1")
	report, err := admin.Client{Socket: n.config.AdminSocket}.Explain(t.Context(), "test/web")
	n.must(err)
	if now := report.Pods[0].Containers[0].State; now != "running" {
		t.Errorf("for the proxy the container is %s, and it runs", now)
	}
}

// holdAnswers puts a server before the node's fake runtime. It keeps the answers of a method until
// their caller goes away. The channel has a value for each.
func (n *node) holdAnswers(method string) <-chan struct{} {
	n.t.Helper()
	done := make(chan struct{}, 1)
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		answer, err := handler(ctx, req)
		if path.Base(info.FullMethod) == method {
			done <- struct{}{}
			<-ctx.Done()
		}
		return answer, err
	}))
	runtimeapi.RegisterRuntimeServiceServer(server, n.runtime)
	n.config.Backend = n.dir + "/holding.sock"
	l, err := net.Listen("unix", n.config.Backend)
	n.must(err)
	go func() { _ = server.Serve(l) }()
	n.t.Cleanup(server.Stop)
	return done
}
