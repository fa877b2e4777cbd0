package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/fleet/agent"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
)

// node is a node with a real proxy and a real agent, before a runtime that runs nothing.
type node struct {
	name, dir string
	registry  string         // that it reaches without TLS
	metrics   *metrics.Agent // of all agents that are started, one after the other
	kubelet   runtimeapi.RuntimeServiceClient
	proxy     *part
	agent     func() (stop func()) // starts it
	stopAgent func()
}

func (n *node) plugins() string { return filepath.Join(n.dir, "plugins.d") }

func (n *node) trust() string { return filepath.Join(n.dir, "trust.yaml") }

// status is the proxy's status socket.
func (n *node) status() string { return filepath.Join(n.dir, "status", "s") }

// has returns the module's digest in a plugin's JSON file, and whether it is enabled; "" if there is no file.
func (n *node) has(t *testing.T, id string) (digest string, enabled bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.plugins(), id+".json"))
	if os.IsNotExist(err) {
		return "", false
	}
	var file struct {
		SHA256  string
		Enabled *bool
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.SHA256, file.Enabled == nil || *file.Enabled
}

// runtime answers what the proxy asks, and starts no pod.
type runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
}

func (runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.0.0", RuntimeApiVersion: "v1"}, nil
}

func (runtime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}}, nil
}

func (runtime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{}, nil
}

func (runtime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{}, nil
}

func (runtime) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: "sandbox-" + r.Config.Metadata.Uid}, nil
}

func (runtime) CreateContainer(_ context.Context, r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	return &runtimeapi.CreateContainerResponse{ContainerId: "container-" + r.PodSandboxId}, nil
}

// startNode starts a node, of which the API server gets the Node and the agent's pod.
func startNode(t *testing.T, s *testcluster.Server, name, spec, wasmproxy, registry string) *node {
	t.Helper()
	n := startProxy(t, s, name, spec, wasmproxy, registry)
	token := s.Token("wasmproxy-agent", "agent-"+name)
	n.agent = func() func() { return n.startAgent(t, s, token, wasmproxy) }
	n.stopAgent = n.agent()
	return n
}

// startProxy starts a node without its agent.
func startProxy(t *testing.T, s *testcluster.Server, name, spec, wasmproxy, registry string) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet-") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{name: name, dir: dir, registry: registry, metrics: metrics.NewAgent()}
	for _, sub := range []string{"plugins.d", "state", "data", "cache"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	backend := filepath.Join(dir, "runtime.sock")
	l, err := net.Listen("unix", backend)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, runtime{})
	runtimeapi.RegisterImageServiceServer(server, runtime{})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	listen := filepath.Join(dir, "proxy.sock")
	n.proxy = newPart(t, "the proxy of "+name, func(ctx context.Context) *exec.Cmd { return n.proxyCommand(ctx, wasmproxy, listen, backend) })
	n.proxy.start()
	conn, err := grpc.NewClient("unix://"+listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	n.kubelet = runtimeapi.NewRuntimeServiceClient(conn)
	makeNode(t, s, name, spec)
	return n
}

func (n *node) proxyCommand(ctx context.Context, wasmproxy, listen, backend string) *exec.Cmd {
	return exec.CommandContext(ctx, wasmproxy, "serve", "--listen", listen, "--backend", "unix://"+backend,
		"--admin-socket", filepath.Join(n.dir, "admin.sock"), "--status-socket", n.status(), "--plugin-dir", n.plugins(), "--hook-dir", "",
		"--state-dir", filepath.Join(n.dir, "state"), "--data-dir", filepath.Join(n.dir, "data"), "--cache-dir", filepath.Join(n.dir, "cache"),
		"--cgroup-root", "", "--bypass-file", filepath.Join(n.dir, "bypass"))
}

// makeNode makes a Node, and the agent's pod on it. spec is more of its JSON.
func makeNode(t *testing.T, s *testcluster.Server, name, spec string) {
	t.Helper()
	register(t, s, name, spec)
	s.Must(http.MethodPost, "/api/v1/namespaces/wasmproxy/pods", `{"metadata": {"name": "agent-`+name+`"},
		"spec": {"nodeName": "`+name+`", "serviceAccountName": "wasmproxy-agent", "containers": [{"name": "agent", "image": "i"}]}}`, nil)
}

// register makes a Node that is ready.
func register(t *testing.T, s *testcluster.Server, name, spec string) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	s.Must(http.MethodPost, "/api/v1/nodes", `{"metadata": {"name": "`+name+`", "labels": {"pool": "batch", "wasmproxy.io/node": "true"}}`+spec+`,
		"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "`+now+`"}]}}`, nil)
}

func (n *node) startAgent(t *testing.T, s *testcluster.Server, token, wasmproxy string) (stop func()) {
	t.Helper()
	client, err := kube.New(s.Config(token))
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(client, agent.Options{
		Node: n.name, Namespace: "wasmproxy", PluginDir: n.plugins(), Program: wasmproxy, Settings: filepath.Join(n.dir, "wasmproxy.yaml"),
		StatusSocket: n.status(), Verifier: filepath.Join(filepath.Dir(wasmproxy), "wasmproxy-fleet-verify"), TrustFile: n.trust(),
		Registry:    oci.Client{PlainHTTP: []string{n.registry}},
		FetchJitter: 10 * time.Millisecond, Poll: 200 * time.Millisecond, ReportEvery: 200 * time.Millisecond,
		Metrics: n.metrics, Log: slog.New(slog.NewTextHandler(&testLog{t, n.name}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return testcluster.During(t, a.Run)
}

// testLog writes to the log of a test.
type testLog struct {
	t    *testing.T
	name string
}

func (l *testLog) Write(text []byte) (int, error) {
	l.t.Logf("%s: %s", l.name, text)
	return len(text), nil
}

// callAll has each node start pods, until the test ends, and tells of those that are refused.
func callAll(t *testing.T, nodes []*node, refused func(*node, error)) {
	testcluster.During(t, func(ctx context.Context) {
		for i := 0; ctx.Err() == nil; i++ {
			for _, n := range nodes {
				if err := n.startPod(ctx, i); err != nil && ctx.Err() == nil {
					refused(n, err)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// startPod starts the i-th pod with its container. One in ten asks the plugin fickle to fail.
func (n *node) startPod(ctx context.Context, i int) error {
	pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: fmt.Sprintf("%s-%d", n.name, i)}}
	sandbox, err := n.kubelet.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return err
	}
	container := &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "i"}}
	if i%10 == 0 {
		container.Annotations = map[string]string{"example.com/do": "fail"}
	}
	_, err = n.kubelet.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox.PodSandboxId, SandboxConfig: pod, Config: container})
	return err
}
