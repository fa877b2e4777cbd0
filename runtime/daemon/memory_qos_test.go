package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// TestMemoryQoSFollowsAResize: kubelet resizes the memory request of a container, which only oom_score_adj tells, and then
// changes its CPUs alone. The container and its pod are protected by the new request, also when the plugin's settings change,
// so that it is asked about all pods again.
func TestMemoryQoSFollowsAResize(t *testing.T) {
	n := bypassable(t)
	n.config.CgroupRoot, n.config.CgroupMode, n.config.StateDir = filepath.Join(n.dir, "cgroup"), "v2", filepath.Join(n.dir, "run", "state")
	n.must(os.Mkdir(n.config.CgroupRoot, 0o755))
	startReporting(n)
	n.putRaw("20-memory-qos.json", `{"grant": ["update.others"]}`)
	n.putRaw("20-memory-qos.wasm", string(plugins.MemoryQoS))
	n.start(daemon.Run)
	n.awaitActive("20-memory-qos")
	id, low := bundled{file: "memory.low", before: "0"}.run(n) // with a score of 999, which tells no request
	podLow := filepath.Join(filepath.Dir(filepath.Dir(low)), "memory.low")
	n.holds(low, "0")

	update := func(r *runtimeapi.LinuxContainerResources) {
		t.Helper()
		_, err := n.kubelet.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: r})
		n.must(err)
	}
	update(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1 << 50, OomScoreAdj: 900})
	first := n.nonzero(low)
	n.eventually("the pod's memory.low", first, n.content(podLow))
	update(&runtimeapi.LinuxContainerResources{OomScoreAdj: 800})
	second := n.nonzero(low)
	if second == first {
		t.Fatalf("memory.low is %s before and after a resize", first)
	}
	n.eventually("the pod's memory.low after a resize", second, n.content(podLow))

	update(&runtimeapi.LinuxContainerResources{CpusetCpus: "1"})
	n.holds(low, second)
	n.putRaw("20-memory-qos.json", `{"grant": ["update.others"], "config": {"memoryThrottlingFactor": 0.5}}`)
	n.awaitLoad("20-memory-qos")
	n.holds(low, second)
	n.holds(podLow, second)
}

// content returns a function that reads a file.
func (n *node) content(file string) func() string {
	return func() string {
		n.t.Helper()
		text, err := os.ReadFile(file)
		n.must(err)
		return strings.TrimSpace(string(text))
	}
}

// nonzero returns what a file holds, which must not be 0.
func (n *node) nonzero(file string) string {
	n.t.Helper()
	text := n.content(file)()
	if text == "0" || text == "" {
		n.t.Fatalf("%s is %q; the log:\n%s", filepath.Base(file), text, n.log)
	}
	return text
}
