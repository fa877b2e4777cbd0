package daemon_test

import (
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// A runtime that is absent at the start is waited for: meanwhile calls are
// answered, with Unavailable, and plugins are loaded.
func TestAbsentRuntime(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.runtime.Stop()
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitSocket()
	if _, err := n.kubelet.Version(t.Context(), &runtimeapi.VersionRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a runtime: %v", err)
	}
	n.await("plugins active", "10-quota")
	n.runtime = fake.NewFakeRemoteRuntime()
	n.must(n.runtime.Start("unix://" + n.config.Backend))
	t.Cleanup(n.runtime.Stop)
	n.await("connected to the container runtime")
	n.await("store filled")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/quota"]; got != "200000" {
		t.Errorf("annotation %q: the plugin did not serve", got)
	}
	n.awaitMetric("wasmproxy_backend_disconnects_total 0") // it was not lost, as it was not there
	n.runtime.Stop()
	n.awaitMetric("wasmproxy_backend_disconnects_total 1")
}

// What ran before the proxy did is known to its plugins.
func TestContainersOlderThanTheProxy(t *testing.T) {
	n := newNode(t)
	n.start(daemon.Run)
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	_, err = n.createContainer(t.Context(), pod, "app")
	n.must(err)
	n.put("10-quota.wasm", "quota")
	n.await("store filled", "pods=1", "containers=1")
	n.await("plugins active", "10-quota")
}

// A daemon that is told to end leaves nothing that answers, and its socket is gone.
func TestEnd(t *testing.T) {
	n := serving(t, map[string]string{"10-quota.wasm": "quota"})
	n.await("plugins active", "10-quota")
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	n.end()
	if took := time.Since(start); took > n.config.DrainTimeout && wallClock() {
		t.Errorf("an idle daemon took %v to end", took)
	}
	if _, err := n.runPod(t.Context(), "late"); status.Code(err) != codes.Unavailable {
		t.Errorf("after the end: %v", err)
	}
	n.await("msg=served", "calls.RunPodSandbox=1")
}
