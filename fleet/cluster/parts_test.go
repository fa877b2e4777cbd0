package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// part is a program that can be killed and started again.
type part struct {
	t       *testing.T
	log     *os.File
	command func(context.Context) *exec.Cmd
	kill    func()
}

func newPart(t *testing.T, name string, command func(context.Context) *exec.Cmd) *part {
	return &part{t: t, log: testcluster.Log(t, name), command: command}
}

func (p *part) start() { p.kill = testcluster.Keep(p.t, p.log, p.command) }

// parts is a fleet whose parts are programs of their own. Each node has a trust file, and a file that somebody has made by hand.
type parts struct {
	*fleet
	gate       *gate // before the registry
	store      *part // the registry
	address    string
	controller *part
	agents     []*part // by node
	watch      *watch
	gone       atomic.Pointer[node] // that never returns
	stable     revision
}

// pluginID is the plugin of these tests.
const pluginID = "50-guest"

// A plugin that no delivery has brought.
const (
	handID   = "10-hand"
	handText = `{"remote-endpoint": "/nowhere", "runtime-hooks": ["PreRunPodSandbox"], "enabled": false}`
)

// startParts starts all of a fleet with three nodes and no plugin.
func startParts(t *testing.T) *parts {
	t.Helper()
	s := startServer(t, "registry", "kube-controller-manager")
	wasmproxy := buildPrograms(t, "./cmd/wasmproxy-fleet", "./cmd/wasmproxy-fleet-verify", "./cmd/wasmproxy-fleet-agent")
	p := &parts{address: "127.0.0.1:" + testcluster.FreePort(t)}
	p.gate = startGate(t, p.address)
	p.fleet = &fleet{t: t, s: s, registry: p.gate.host, artifacts: map[string]string{}, digests: map[string]string{}}
	p.store = newPart(t, "registry", registryCommand(t, filepath.Join(s.Bin, "registry"), p.address))
	p.startStore()
	key := p.pushAll()
	for i := range 3 {
		n := startProxy(t, s, fmt.Sprintf("node-%d", i+1), "", wasmproxy, p.gate.host)
		write(t, filepath.Join(n.dir, "plugins.pub"), key.Public(t))
		write(t, n.trust(), []byte("repositories:\n- {name: "+p.gate.host+"/*, key: plugins.pub}\n"))
		write(t, filepath.Join(n.plugins(), handID+".json"), []byte(handText))
		p.nodes = append(p.nodes, n)
		p.agents = append(p.agents, newPart(t, n.name, n.agentCommand(s, filepath.Join(filepath.Dir(wasmproxy), "wasmproxy-fleet-agent"))))
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	s.Kubeconfig(kubeconfig, s.Token("wasmproxy-controller", ""))
	p.controller = newPart(t, "controller", func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(filepath.Dir(wasmproxy), "wasmproxy-fleet"), "controller",
			"--kubeconfig", kubeconfig, "--interval", "300ms", "--identity", "pod") // which stays when a container is started again
	})
	for _, n := range p.nodes {
		testcluster.Eventually(t, "the proxy of "+n.name+" answers", func() error {
			_, err := n.kubelet.Version(t.Context(), &runtimeapi.VersionRequest{})
			return err
		})
	}
	callAll(t, p.nodes, func(n *node, err error) {
		if n != p.gone.Load() {
			t.Errorf("a pod of %s is refused: %v", n.name, err)
		}
	})
	return p
}

// registryCommand is the registry of the distribution project, which keeps what it has in a directory.
func registryCommand(t *testing.T, program, address string) func(context.Context) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "registry.yaml")
	write(t, config, fmt.Appendf(nil, "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n",
		filepath.Join(dir, "content"), address))
	return func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, "serve", config)
		cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
		return cmd
	}
}

// pushAll brings modules to the registry. All but forged are signed by the key that the nodes trust.
func (p *parts) pushAll() trusttest.Key {
	key := trusttest.NewKey(p.t)
	for _, module := range []string{"noop", "quota", "fail"} {
		p.push(module, module)
		p.sign(module, key)
	}
	p.push("forged", "reject")
	p.sign("forged", trusttest.NewKey(p.t))
	for _, digest := range p.digests {
		p.gate.modules[digest] = true
	}
	return key
}

func (p *parts) startStore() {
	p.store.start()
	testcluster.Eventually(p.t, "the registry answers", func() error {
		resp, err := http.Get("http://" + p.address + "/v2/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

func (p *parts) startAgents() {
	for i, agent := range p.agents {
		if p.nodes[i] != p.gone.Load() {
			agent.start()
		}
	}
}

func (p *parts) killAgents() {
	for _, agent := range p.agents {
		agent.kill()
	}
}
