package daemon_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
	"github.com/wasmproxy/wasmproxy/testdata/hookserver"
)

const skipLabel = "runtimeproxy.koordinator.sh/skip-hookserver"

// register puts a file into hookserver.d.
func (n *node) register(name, content string) {
	n.t.Helper()
	n.must(os.WriteFile(filepath.Join(n.config.HookDir, name), []byte(content), 0o644))
}

// runLabelled runs a pod in a namespace, with the label if its value is not empty.
func (n *node) runLabelled(namespace, name, skip string) error {
	labels := map[string]string{}
	if skip != "" {
		labels[skipLabel] = skip
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: namespace + name}, Labels: labels,
	}
	pod, err := n.kubelet.RunPodSandbox(n.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return err
	}
	created, err := n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.GetPodSandboxId(), SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	if err != nil {
		return err
	}
	_, err = n.kubelet.StartContainer(n.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	return err
}

// A pod with the skip label starts while a hook server that must not be ignored is
// down, from the first call on; others do not. The annotation of that name, and
// another value, count for nothing. A wasm plugin is no hook server.
func TestSkipLabel(t *testing.T) {
	n := newNode(t)
	n.config.SkipLabel = skipLabel + "=true"
	n.put("10-quota.wasm", "quota")
	n.register("koordlet.json", `{"remote-endpoint": "/nobody/listens.sock", "failure-policy": "Fail",
		"runtime-hooks": ["PreRunPodSandbox", "PreCreateContainer", "PreStartContainer"]}`)
	n.start(daemon.Run)
	n.must(n.runLabelled("koordinator-system", "early", "true"))
	n.await("plugins active", "10-quota", "koordlet")
	n.must(n.runLabelled("koordinator-system", "koordlet", "true"))
	for _, value := range []string{"", "false"} {
		if err := n.runLabelled("test", "web", value); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "plugin koordlet: PreRunPodSandbox") {
			t.Errorf("label %q: %v", value, err)
		}
	}
	found := false
	for _, c := range n.runtime.RuntimeService.Containers {
		found = found || c.Annotations["example.com/quota"] == "200000"
	}
	if !found {
		t.Error("the wasm plugin was not asked about a pod that keeps away from hook servers")
	}
	n.register("koordlet.json", `{"remote-endpoint": "koordlet.sock", "failure-policy": "Fail"}`)
	n.register("other.json", `{"remote-endpoint": "other.sock", "failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.await("plugin file rejected", "other.json")
	n.must(n.runLabelled("koordinator-system", "koordlet-2", "true")) // a bad file keeps nobody from repairing it
}

// A hook server's match is judged by the proxy.
func TestMatchOfAHookServer(t *testing.T) {
	n := newNode(t)
	n.register("a.json", `{"remote-endpoint": "/nobody/listens.sock", "failure-policy": "Fail",
		"runtime-hooks": ["PreRunPodSandbox"], "match": {"namespaces": ["prod-*"]}}`)
	n.start(daemon.Run)
	n.await("plugins active", "plugins=[a]")
	n.must(n.runLabelled("test", "web", ""))
	if err := n.runLabelled("prod-shop", "web", ""); status.Code(err) != codes.Unavailable {
		t.Errorf("a pod that matches: %v", err)
	}
}

// A wasm plugin in hookserver.d goes within the same chain.
func TestModuleInHookserverDirectory(t *testing.T) {
	n := newNode(t)
	n.must(os.WriteFile(filepath.Join(n.config.HookDir, "quota.wasm"), []byte(module(t, "quota")), 0o644))
	n.register("20-quota.json", `{"wasm-module": "quota.wasm"}`)
	n.start(daemon.Run)
	n.await("plugins active", "plugins=[20-quota]")
	n.must(n.runLabelled("test", "web", ""))
	for _, c := range n.runtime.RuntimeService.Containers {
		if c.Annotations["example.com/quota"] != "200000" {
			t.Errorf("annotations %v", c.Annotations)
		}
	}
	n.must(os.Remove(filepath.Join(n.config.HookDir, "20-quota.json")))
	n.must(os.Remove(filepath.Join(n.config.HookDir, "quota.wasm")))
	n.await("no plugins active")
}

// stopped notes PostStopContainer.
type stopped struct {
	mu    sync.Mutex
	calls int
}

func (s *stopped) PostStopContainerHook(context.Context, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return &pb.ContainerResourceHookResponse{}, nil
}

func (s *stopped) PreCreateContainerHook(context.Context, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return &pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: 77}}, nil
}

// koord-compat tells hook servers of calls that failed, and clears what their
// resources do not name.
func TestKoordCompat(t *testing.T) {
	for _, compat := range []bool{false, true} {
		n := newNode(t)
		n.config.KoordCompat = compat
		server := &stopped{}
		l, err := net.Listen("unix", filepath.Join(n.dir, "hook.sock"))
		n.must(err)
		g := grpc.NewServer()
		hookserver.Register(g, server)
		go g.Serve(l)
		t.Cleanup(g.Stop)
		n.register("koordlet.json", `{"remote-endpoint": "`+n.dir+`/hook.sock", "failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer", "PostStopContainer"]}`)
		n.start(daemon.Run)
		n.await("plugins active", "plugins=[koordlet]")
		pod, err := n.runPod(t.Context(), "web")
		n.must(err)
		created, err := n.kubelet.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: pod, SandboxConfig: &runtimeapi.PodSandboxConfig{},
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
				Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: 900, CpusetCpus: "0-1", CpuPeriod: 100_000}},
			},
		})
		n.must(err)
		n.runtime.RuntimeService.InjectError("StopContainer", errors.New("no"))
		if _, err := n.kubelet.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: created.GetContainerId()}); err == nil {
			t.Error("the runtime did not fail")
		}
		n.end()
		if want := map[bool]int{false: 0, true: 1}[compat]; server.calls != want {
			t.Errorf("compat %v: %d hooks after a failed stop, want %d", compat, server.calls, want)
		}
		if cleared := strings.Contains(n.log.String(), "container.resources.cpuset_cpus"); cleared != compat {
			t.Errorf("compat %v: cpuset cleared: %v; log:\n%s", compat, cleared, n.log)
		}
	}
}

// hung answers nothing, as a process that is stopped.
type hung struct{}

func (hung) PreRunPodSandboxHook(ctx context.Context, _ *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// willing answers at once.
type willing struct{}

func (willing) PreRunPodSandboxHook(context.Context, *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
	return &pb.PodSandboxHookResponse{Annotations: map[string]string{"example.com/by": "willing"}}, nil
}

// A hook server that hung until its breaker opened, and is started again, is asked
// at once and not when the breaker would have tried it.
func TestRestartClosesTheBreaker(t *testing.T) {
	n := newNode(t)
	listen := func(server any) (stop func()) {
		l, err := net.Listen("unix", filepath.Join(n.dir, "hook.sock"))
		n.must(err)
		g := grpc.NewServer()
		hookserver.Register(g, server)
		go g.Serve(l)
		t.Cleanup(g.Stop)
		return g.Stop
	}
	stop := listen(hung{})
	n.register("koordlet.json", `{"remote-endpoint": "`+n.dir+`/hook.sock", "timeout": "200ms", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.start(daemon.Run)
	n.await("plugins active", "plugins=[koordlet]")
	for i := range 7 { // the breaker opens at the fifth, and each try makes it wait longer
		_, err := n.runPod(t.Context(), podName(i))
		n.must(err) // Ignore
	}
	n.await("circuit breaker opened", "koordlet")
	stop()
	listen(willing{})
	n.await("circuit breaker closed", "koordlet")
	id, err := n.runPod(t.Context(), "after")
	n.must(err)
	if by := n.runtime.RuntimeService.Sandboxes[id].Annotations["example.com/by"]; by != "willing" {
		t.Errorf("annotation %q", by)
	}
}
