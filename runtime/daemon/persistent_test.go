package daemon_test

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// count creates a container and returns what testdata/wat/counter made of it.
func (n *node) count(pod, name string) string {
	n.t.Helper()
	id, err := n.createContainer(n.t.Context(), pod, name)
	n.must(err)
	status, err := n.kubelet.ContainerStatus(n.t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	n.must(err)
	return status.GetStatus().GetAnnotations()["example.com/count"]
}

// What a plugin keeps on the host outlives a reload of the plugin, and goes with
// its files; what it has counted is reported at the end.
func TestKeptOverReloads(t *testing.T) {
	n := serving(t, map[string]string{"10-counter.wasm": "counter", "10-counter.json": `{"grant": ["state.kv"]}`})
	n.awaitLoad("10-counter")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	first, second := n.count(pod, "1"), n.count(pod, "2")
	n.put("10-counter.json", `{"grant": ["state.kv"], "config": {"another": 1}}`)
	n.awaitLoad("10-counter")
	if third := n.count(pod, "3"); first+second+third != "abc" {
		t.Errorf("refCounted %q, %q and after a reload %q", first, second, third)
	}
	n.remove("10-counter.wasm")
	n.await("plugin removed", "10-counter")
	n.put("10-counter.wasm", "counter")
	n.awaitLoad("10-counter")
	if again := n.count(pod, "4"); again != "a" {
		t.Errorf("refCounted %q after the plugin was removed and put back", again)
	}
	n.end()
	n.await("msg=served", "metrics.10-counter.calls_total=1")
}
