// Package e2enode_test is `make e2e-node`: Kubernetes' own tests of a node, e2e_node, directly on the container runtime and
// through wasmproxy, whose plugins set values of each pod. A spec that passes directly must pass through wasmproxy. A
// spec that fails directly tells of the machine, of the images or of Kubernetes, and is no concern of these tests.
package e2enode_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/specs"
)

func TestMain(m *testing.M) {
	node.MainNamed("e2e-node", m, node.Programs(append(artifact.E2ENode(), artifact.Kubelet())...),
		node.Bundled("audit", "default-annotations", "memory-qos"))
}

// chosen are the specs that a run of the suite is of, as regular expressions of ginkgo.
type chosen struct{ focus, skip string }

// byEnvironment are the specs that FOCUS and SKIP choose. Unless set, these are in-place resizes of containers and pods, and
// the life of containers. Kubernetes' own jobs skip the same for their ordinary nodes.
func byEnvironment() chosen {
	return chosen{
		cmp.Or(os.Getenv("FOCUS"), `Pod InPlace Resize|Containers Lifecycle|Container Lifecycle Hook|Lifecycle Sleep|Lifecycle sleep`),
		cmp.Or(os.Getenv("SKIP"), `\[(Serial|Slow|Disruptive|Flaky|Alpha)\]`),
	}
}

// burst is more than each quota, to which the plugin qos cuts it. So each change of a quota changes it, too.
const burst = "100000"

// setting are plugins of which each pod gets values: default-annotations gives each the annotation by which qos gives its
// containers a burst, and memory-qos sets what cgroup v2 has for memory.
func setting() []node.Plugin {
	annotations := map[string]any{"defaults": []any{map[string]any{
		"namespaces": []string{"*"}, "annotations": map[string]string{"qos.wasmproxy.io/cpu-burst": burst},
	}}}
	others := []string{"update.others"}
	return []node.Plugin{
		{File: "10-audit.wasm", Program: "audit.wasm"},
		{File: "20-default-annotations.wasm", Program: "default-annotations.wasm", Config: annotations},
		{File: "30-memory-qos.wasm", Program: "memory-qos.wasm", Grant: others},
		{File: "40-qos.wasm", Program: "qos.wasm", Grant: others},
	}
}

// contrary are specs of pods without a value that a plugin of setting gives to each pod, by name, and what that plugin does. Such
// a spec has to fail through wasmproxy.
var contrary = map[string]string{
	"[sig-node] MemoryQoS [Serial] memoryReservationPolicy should NOT set memory protection when policy is None": "memory-qos sets memory.low",
}

func TestNoSpecIsLost(t *testing.T) {
	var direct, through, again specs.Results
	t.Run("direct", func(t *testing.T) { direct = run(t, node.StartRuntime(t).Endpoint, byEnvironment()) })
	if direct.Count(specs.Passed) == 0 {
		t.Fatal("no spec passed directly: there is nothing to compare with")
	}
	t.Run("through wasmproxy", func(t *testing.T) { through = runThrough(t, byEnvironment()) })
	if through == nil {
		t.Fatal("the suite did not run through wasmproxy: there is nothing to compare")
	}
	for name, does := range contrary {
		if direct[name] == specs.Passed && through[name] != specs.Failed {
			t.Errorf("%s: %s through wasmproxy, although %s", name, through[name], does)
		}
	}
	lost := failedOf(direct, through)
	if len(lost) > 0 {
		t.Logf("again, since they passed directly and not through wasmproxy:\n%s", strings.Join(lost, "\n"))
		t.Run("again", func(t *testing.T) { again = runThrough(t, byName(lost)) })
	}
	lost = slices.DeleteFunc(lost, func(name string) bool { return again[name] == specs.Passed })
	report(t, direct, through)
	for _, name := range lost {
		t.Errorf("lost through wasmproxy, twice: %s: %s", name, again[name])
	}
	t.Logf("lost: %d of %d", len(lost), direct.Count(specs.Passed))
}

// runThrough runs the suite through wasmproxy, and checks that plugins had a part in it.
func runThrough(t *testing.T, c chosen) specs.Results {
	t.Helper()
	endpoint := node.StartRuntime(t).ProxyEndpoint
	proxy := node.StartProxy(t, setting()...)
	got := run(t, endpoint, c)
	written := writes(t, proxy)
	served := proxy.Stop(t)
	for _, method := range slices.Sorted(maps.Keys(served.Calls)) {
		t.Logf("calls: %6d %s", served.Calls[method], method)
	}
	t.Logf("cgroup files written, by plugin: %v", written)
	if written["40-qos"] == 0 {
		t.Errorf("%d pods were run, and qos wrote no cgroup file", served.Calls["RunPodSandbox"])
	}
	if len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
	return got
}

// writesMetric is a line of wasmproxy's metrics.
var writesMetric = regexp.MustCompile(`(?m)^wasmproxy_cgroup_writes_total\{plugin="(.+)"\} (.+)$`)

// writes returns how many cgroup files wasmproxy has written, by plugin.
func writes(t *testing.T, proxy *node.Proxy) map[string]float64 {
	t.Helper()
	page, err := proxy.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatalf("asking wasmproxy for its metrics: %v", err)
	}
	written := map[string]float64{}
	for _, line := range writesMetric.FindAllStringSubmatch(page, -1) {
		if written[line[1]], err = strconv.ParseFloat(line[2], 64); err != nil {
			t.Fatalf("reading wasmproxy's metric %s: %v", line[0], err)
		}
	}
	return written
}

// failedOf returns the specs that passed directly and not through wasmproxy, without those of contrary.
func failedOf(direct, through specs.Results) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		if direct[name] == specs.Passed && through[name] != specs.Passed && contrary[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// byName chooses specs by their whole names.
func byName(names []string) chosen {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	return chosen{focus: strings.Join(quoted, "|")}
}

// report prints a table of both runs, and which specs fail in them.
func report(t *testing.T, direct, through specs.Results) {
	t.Helper()
	t.Logf("%-18s %6s %6s %7s", "", "passed", "failed", "skipped")
	row := func(name string, r specs.Results) {
		t.Logf("%-18s %6d %6d %7d", name, r.Count(specs.Passed), r.Count(specs.Failed), r.Count(specs.Skipped))
	}
	row("direct", direct)
	row("through wasmproxy", through)
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		if direct[name] != specs.Failed {
			continue
		}
		t.Logf("fails directly, and through wasmproxy: %s: %s", through[name], name)
	}
}
