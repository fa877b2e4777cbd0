package daemon_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// What a wasm plugin of NRI 0.12.5 does to its node once and for all, it does here
// to its own call. fickle.wat and remember.wat do it when a container's annotation
// asks for it, so that the call after it shows what is left of it.

// ask creates a container that asks the plugin for something, and returns the
// annotations that the runtime got.
func (n *node) ask(ctx context.Context, name, what string) (map[string]string, error) {
	resp, err := n.kubelet.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: "web",
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
			Annotations: map[string]string{"example.com/do": what},
		},
		SandboxConfig: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web"}},
	})
	if err != nil {
		return nil, err
	}
	n.runtime.RuntimeService.Lock()
	defer n.runtime.RuntimeService.Unlock()
	return n.runtime.RuntimeService.Containers[resp.GetContainerId()].Annotations, nil
}

// nri are the five ways in which a guest made NRI's node useless: a loop, and a loop
// of a plugin that must stay (each call failed for ever), an exit (each container
// failed for ever), a panic (the broken instance served on), and memory without a
// limit.
var nri = []struct{ name, guest, do, policy, says string }{
	{"loop", "fickle", "loop", "Ignore", "units of fuel"},
	{"loop of a required plugin", "fickle", "loop", "Fail", "units of fuel|time limit"},
	{"exit", "fickle", "exit", "Fail", "exited with code 1"},
	{"panic", "fickle", "trap", "Fail", "trapped: unreachable"},
}

func TestWhatBricksNRI(t *testing.T) {
	for _, engine := range engines {
		for _, c := range nri {
			t.Run(engine.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.put("10-bad.json", strings.Replace(engine.json, "Fail", c.policy, 1))
				n.put("10-bad.wasm", c.guest)
				n.put("20-quota.wasm", "quota")
				n.serve("10-bad", "20-quota")
				for round := range 3 {
					n.misuse(t, podName(2*round), c.do, c.policy, c.says)
					got, err := n.ask(t.Context(), podName(2*round+1), "")
					if err != nil || got["example.com/count"] != "1" || got["example.com/quota"] != "200000" {
						t.Errorf("the next call: annotations %v, %v; want a guest that remembers nothing, and the plugin after it", got, err)
					}
				}
			})
		}
		t.Run(engine.name+"/memory", func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.put("10-bad.json", engine.json)
			n.put("10-bad.wasm", "grow-by-pages")
			n.put("20-good.wasm", "noop")
			n.serve("10-bad", "20-good")
			for i := range 3 {
				if _, err := n.createContainer(t.Context(), "web", "app"); err != nil && !strings.Contains(err.Error(), "time limit") {
					t.Errorf("it takes 32 MiB: %v", err)
				}
				if _, err := n.runPod(t.Context(), podName(i)); err != nil {
					t.Errorf("the next call: %v", err)
				}
			}
		})
	}
}

// misuse makes the guest do what it is asked for: under Fail the call fails and says
// why, under Ignore it is served, and the plugin after this one serves it too.
func (n *node) misuse(t *testing.T, container, what, policy, says string) {
	t.Helper()
	got, err := n.ask(t.Context(), container, what)
	switch {
	case policy == "Ignore" && (err != nil || got["example.com/quota"] != "200000"):
		t.Errorf("asked to %s under Ignore: annotations %v, %v", what, got, err)
	case policy == "Fail" && (status.Code(err) != codes.Unavailable || !containsOne(err.Error(), says)):
		t.Errorf("asked to %s under Fail: %v, want %q", what, err, says)
	}
}

// serve starts the daemon and waits until these plugins serve.
func (n *node) serve(plugins ...string) {
	n.t.Helper()
	n.start(daemon.Run)
	n.awaitActive(plugins...)
}
