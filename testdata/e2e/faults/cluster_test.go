package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/tap"
)

// Endpoints of the relays.
const (
	frontEndpoint = "unix:///run/faults/front.sock"
	backEndpoint  = "unix:///run/faults/back.sock"
	hooksEndpoint = "unix:///run/faults/hooks.sock"
)

// witness is the plugin that is called in every hook. Its policy is Fail: no call passes it by.
const witness = "20-noop"

// cluster is the node of all cases.
type cluster struct {
	runtime *node.Runtime
	back    *tap.Tap
	server  *node.HookServer
	hooks   *tap.Tap // before the hook server
	proxy   *node.Proxy
	front   *tap.Tap
	api     *node.APIServer
	kubelet *node.Kubelet
	direct  node.CRI // the container runtime itself
	through node.CRI // as kubelet calls it
	sockets []string // that the proxy has while it runs
}

func startCluster(t *testing.T) *cluster {
	names := tap.NewNames()
	kind := node.RuntimeKind()
	c := &cluster{
		back: tap.New(backEndpoint, kind.Endpoint, names), front: tap.New(frontEndpoint, kind.ProxyEndpoint, names),
		direct: node.DialCRI(t, kind.Endpoint), through: node.DialCRI(t, frontEndpoint),
	}
	if err := os.MkdirAll("/run/faults", 0o700); err != nil {
		t.Fatal(err)
	}
	c.runtime = node.StartRuntime(t)
	c.open(t, c.back)
	c.server = node.StartHookServer(t)
	c.hooks = tap.New(hooksEndpoint, c.server.Endpoint(), names)
	c.open(t, c.hooks)
	c.proxy = node.StartProxyBefore(t, backEndpoint, node.QoS)
	if err := os.WriteFile(filepath.Join(c.proxy.PluginDir, witness+".json"), []byte(`{"failure-policy": "Fail"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	c.proxy.Add(t, node.Noop)
	node.RegisterHookServer(t, c.proxy, hooksEndpoint, "05-koordlet.json", "Fail", "PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources")
	c.open(t, c.front)
	c.sockets = socketsOfProxy(t)
	c.api = node.StartAPIServer(t)
	c.kubelet = node.StartKubelet(t, frontEndpoint, nil, "--kubeconfig="+c.api.Kubeconfig)
	return c
}

func (c *cluster) open(t *testing.T, r *tap.Tap) {
	t.Helper()
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Cut)
}

func (c *cluster) tap(s side) *tap.Tap {
	if s == front {
		return c.front
	}
	return c.back
}

// socketsOfProxy lists what is in the directory of the proxy's sockets.
func socketsOfProxy(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("/run/wasmproxy")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// poll calls try until it returns nil. It returns the last error if that takes longer than the timeout.
func poll(ctx context.Context, timeout time.Duration, awaited string, try func() error) error {
	for begin := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Since(begin) > timeout {
			return fmt.Errorf("waiting %v until %s: %w", timeout, awaited, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
