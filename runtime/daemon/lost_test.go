package daemon_test

import (
	"context"
	"net"
	"path"
	"sync/atomic"
	"testing"
	"time"

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
	n.start(daemon.RunWithoutStartFills)
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
	n.awaitKnown("running")
}

// A start and a removal that are under way while the first plugin comes end after the store is
// filled. No generation saw them.
func TestCallsWhileTheFirstPluginComes(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = n.dir + "/admin.sock"
	arrived, release := make(chan struct{}), make(chan struct{})
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if method := path.Base(info.FullMethod); method == "StartContainer" || method == "RemoveContainer" {
			arrived <- struct{}{}
			<-release
		}
		return handler(ctx, req)
	})
	n.start(daemon.RunWithoutStartFills)
	n.awaitSocket()
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	during := func(call func() error, before, after string) {
		t.Helper()
		ended := make(chan error)
		go func() { ended <- call() }()
		receive(n, arrived)
		n.put("10-quota.wasm", "quota")
		n.awaitActive("10-quota")
		n.awaitKnown(before)
		release <- struct{}{}
		n.must(receive(n, ended))
		n.awaitKnown(after)
		n.remove("10-quota.wasm")
		n.await("no plugins")
	}
	during(func() error {
		_, err := n.kubelet.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
		return err
	}, "created", "running")
	during(func() error {
		_, err := n.kubelet.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id})
		return err
	}, "running", "gone")
}

// awaitKnown waits until the proxy knows the only container of pod web in this state, or as gone.
func (n *node) awaitKnown(want string) {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		report, err := admin.Client{Socket: n.config.AdminSocket}.Explain(n.t.Context(), "test/web")
		n.must(err)
		now := "gone"
		if all := report.Pods[0].Containers; len(all) > 0 {
			now = all[0].State
		}
		if now == want {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("for the proxy the container is %s, want %s", now, want)
		}
	}
}

// A container that the runtime cannot describe keeps neither the store from being filled, nor the
// proxy from being ready. The runtime is asked for it again.
func TestContainerThatTheRuntimeCannotDescribe(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = n.dir + "/admin.sock"
	var sound atomic.Bool
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if path.Base(info.FullMethod) == "ContainerStatus" && !sound.Load() {
			return nil, status.Error(codes.Unknown, "broken")
		}
		return handler(ctx, req)
	})
	n.runContainer()
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.await("does not describe", "again=5s", "1 of the backend's 2 pods and containers")
	n.awaitActive("10-quota")
	n.awaitSocket()
	n.awaitKnown("created")
	s, err := admin.Client{Socket: n.config.AdminSocket}.Status(t.Context())
	n.must(err)
	if s.Store.State != "filled" || len(s.NotReady) > 0 {
		t.Errorf("the store is %s, not ready: %v", s.Store.State, s.NotReady)
	}
	sound.Store(true)
	n.await("store filled", "containers=1")
}

// The values of a plugin that is removed while the proxy is down are undone on a container, too, that
// the runtime cannot describe afterwards.
func TestValuesOnAContainerThatTheRuntimeCannotDescribe(t *testing.T) {
	n, idle := withFiles(t)
	n.end()
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if path.Base(info.FullMethod) == "ContainerStatus" {
			return nil, status.Error(codes.Unknown, "broken")
		}
		return handler(ctx, req)
	})
	n.remove("10-qos.wasm")
	n.start(daemon.Run)
	n.await("cgroup file undone", "file=cpu.idle")
	n.holds(idle, "0")
}

// runContainer creates a container in pod web without the proxy.
func (n *node) runContainer() (id string) {
	n.t.Helper()
	pod, err := n.runtime.RunPodSandbox(n.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podNamed("web")})
	n.must(err)
	app, err := n.runtime.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.PodSandboxId, SandboxConfig: podNamed("web"),
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	n.must(err)
	return app.ContainerId
}

// holdAnswers keeps the answers of a method until their caller goes away. The channel has a value for each.
func (n *node) holdAnswers(method string) <-chan struct{} {
	n.t.Helper()
	done := make(chan struct{}, 1)
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		answer, err := handler(ctx, req)
		if path.Base(info.FullMethod) == method {
			done <- struct{}{}
			<-ctx.Done()
		}
		return answer, err
	})
	return done
}

// before puts a server before the node's fake runtime.
func (n *node) before(intercept grpc.UnaryServerInterceptor) {
	n.t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(intercept))
	runtimeapi.RegisterRuntimeServiceServer(server, n.runtime)
	n.config.Backend = n.dir + "/before.sock"
	l, err := net.Listen("unix", n.config.Backend)
	n.must(err)
	go func() { _ = server.Serve(l) }()
	n.t.Cleanup(server.Stop)
}
