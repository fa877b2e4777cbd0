package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// gate is an observer that waits when a plugin has become active, and with it the goroutine that
// owns the plugins.
type gate struct {
	observe.Observer
	plugin        string
	reached, open chan struct{}
}

func (g *gate) Observe(ctx context.Context, e observe.Event) {
	g.Observer.Observe(ctx, e)
	if a, ok := e.(*observe.GenerationActive); ok && slices.Contains(a.Plugins, g.plugin) {
		select {
		case g.reached <- struct{}{}:
		default: // it was told before
		}
		<-g.open
	}
}

// Calls pass in a bypass though the owner of the plugins is busy, and although it learns of a bypass only when that is over,
// the plugins are loaded again.
func TestBypassWhileTheOwnerOfPluginsIsBusy(t *testing.T) {
	n := bypassable(t)
	n.put("40-trap.json", `{"failure-policy": "Fail"}`)
	n.put("40-trap.wasm", "trap")
	g := &gate{plugin: "50-late", reached: make(chan struct{}, 1), open: make(chan struct{})}
	n.start(func(ctx context.Context, c *config.Config, o observe.Observer) error {
		g.Observer = o
		return daemon.Run(ctx, c, g)
	})
	n.awaitActive("40-trap")
	n.put("50-late.wasm", "noop")
	receive(n, g.reached)
	if !n.refusesPod("one") {
		t.Error("the plugin refuses nothing")
	}
	n.bypass("")
	if n.refusesPod("two") {
		t.Error("a pod is refused while plugins are bypassed")
	}
	n.must(os.Remove(n.config.BypassFile))
	close(g.open)
	n.await("plugins are not bypassed any more")
	for end := time.Now().Add(patience); !n.refusesPod("web"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the plugin refuses nothing after the bypass; the log:\n%s", n.log)
		}
	}
}

// A container that goes while there is no plugin leaves no record of a value that is to be undone: neither in a bypass nor after
// the last plugin was removed.
func TestContainerThatGoesWithoutPlugins(t *testing.T) {
	for name, end := range map[string]func(*node){
		"bypass":  func(n *node) { n.bypass("") },
		"removed": func(n *node) { n.remove("10-qos.wasm"); n.remove("20-quota.wasm"); n.await("no plugins active") },
	} {
		t.Run(name, func(t *testing.T) {
			n := bypassable(t)
			idle := n.runIdle()
			n.awaitSocket()
			group := filepath.Dir(idle)
			n.must(os.Remove(idle))
			n.must(os.Mkdir(idle, 0o755)) // which cannot be written
			end(n)
			_, err := n.kubelet.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: filepath.Base(group)})
			n.must(err)
			n.must(os.RemoveAll(group))
			recorded := func() int {
				s, err := n.admin().Status(t.Context())
				n.must(err)
				return s.Values.Objects
			}
			if recorded() == 0 {
				t.Error("the value that cannot be undone has no record")
			}
			services := n.runtime.RuntimeService
			n.runtime.Stop() // when it is back, the proxy looks for what is left
			n.runtime = fake.NewFakeRemoteRuntime()
			n.runtime.RuntimeService = services
			n.must(n.runtime.Start("unix://" + n.config.Backend))
			t.Cleanup(n.runtime.Stop)
			for end := time.Now().Add(patience); recorded() != 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d objects have a record; the log:\n%s", recorded(), n.log)
				}
			}
		})
	}
}
