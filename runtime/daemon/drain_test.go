package daemon_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// A daemon that is told to stop while a guest runs ends when its drain timeout is up,
// counted once, and frees nothing that the guest still uses.
func TestStopWhileAGuestRuns(t *testing.T) {
	const drain = 500 * time.Millisecond
	for _, hook := range []string{"PreRunPodSandbox", "PostStopContainer"} {
		t.Run(hook, func(t *testing.T) {
			n := newNode(t)
			n.config.DrainTimeout = drain
			n.put("10-loop.wasm", "announced-loop")
			n.put("10-loop.json", `{"failure-policy":"Fail","timeout":"6s","runtime-hooks":["`+hook+`"],`+endlessFuel+`}`)
			n.start(daemon.Run)
			n.await("plugins active", "plugins=[10-loop]")
			_, err := n.kubelet.Version(t.Context(), &runtimeapi.VersionRequest{}) // so that there is a connection
			n.must(err)
			answer := make(chan error, 1)
			go func() {
				_, err := n.runPod(t.Context(), "web")
				if err == nil {
					err = n.stopContainer(t)
				}
				answer <- err
			}()
			cut := hook == "PreRunPodSandbox"
			if !cut {
				n.must(receive(n, answer))
			}
			n.await("plugin log", "text=looping")
			start := time.Now()
			n.end()
			if took := time.Since(start); took < drain || took > 15*time.Second && wallClock() {
				t.Errorf("the daemon ended after %v, with a drain timeout of %v", took, drain)
			}
			if cut {
				n.await("work did not end in time at shutdown", "of=calls")
				if err := receive(n, answer); status.Code(err) != codes.Unavailable {
					t.Errorf("the call ended with %v", err)
				}
				return
			}
			n.await("work did not end in time at shutdown", `of="post hooks"`)
			n.await("plugin failed and was ignored", "ran longer than its time limit of 6s")
		})
	}
}

// stopContainer creates a container and stops it.
func (n *node) stopContainer(t *testing.T) error {
	id, err := n.createContainer(t.Context(), "web", "app")
	if err == nil {
		_, err = n.kubelet.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id})
	}
	return err
}

// A call that comes while plugins are loaded at the start waits for them, and not for one that cannot be loaded.
func TestCallsWaitForPluginsAtTheStart(t *testing.T) {
	n := newNode(t)
	n.put("10-quota.wasm", "quota")
	n.put("20-bad.wasm", "wrong-signature")
	n.start(daemon.RunAwaitingPlugins)
	loaded, serving := strings.Index(n.log.String(), "plugins=[10-quota]"), strings.Index(n.log.String(), "msg=serving")
	if loaded < 0 || serving < loaded {
		t.Errorf("the log is\n%s", n.log)
	}
	n.await("plugin not loaded", "20-bad")
}

// A plugin that waits for a container runtime that does not answer does not keep the daemon from serving.
func TestCallsWaitBrieflyAtTheStart(t *testing.T) {
	n := newNode(t)
	n.config.Backend = n.dir + "/mute.sock"
	mute, err := net.Listen("unix", n.config.Backend) // which answers nothing
	n.must(err)
	defer mute.Close()
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	if strings.Contains(n.log.String(), "plugins=[10-quota]") {
		t.Error("a plugin is active though the runtime has not told of its pods")
	}
}
