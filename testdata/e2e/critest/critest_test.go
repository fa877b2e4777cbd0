// Package critest_test runs the CRI conformance tests of the Kubernetes project.
// TestNoop is part of `make test` on CRI-O and Docker: through wasmproxy, with a
// plugin on every hook, against a committed list. TestFourWays is `make critest`
// and its like: against the runtime itself, and through wasmproxy in three ways,
// which must lose none.
package critest_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/specs"
)

func TestMain(m *testing.M) { node.Main(m, node.Programs(artifact.Critest)) }

// masked is the one spec that is skipped by name: it compares the exact words
// of busybox's shell, and the images' shell is bash.
const masked = "runtime should support MaskedPaths"

// hook is a row of the table of hooks.
type hook struct {
	name, method string
	every        bool // asked of every call, else only of those that succeeded, or that name what exists
}

// allHooks are the hooks of the noop plugin, but for those of calls that critest does
// not make: updates of pod sandboxes, checkpoints and restores. Nothing exists that
// Synchronize could tell of.
var allHooks = []hook{
	{"PreRunPodSandbox", "RunPodSandbox", true},
	{"PostRunPodSandbox", "RunPodSandbox", false},
	{"PreCreateContainer", "CreateContainer", true},
	{"PostCreateContainer", "CreateContainer", false},
	{"PreStartContainer", "StartContainer", true},
	{"PostStartContainer", "StartContainer", false},
	{"PreUpdateContainerResources", "UpdateContainerResources", true},
	{"PostUpdateContainerResources", "UpdateContainerResources", false},
	{"PreStopContainer", "StopContainer", false},
	{"PostStopContainer", "StopContainer", false},
	{"PreRemoveContainer", "RemoveContainer", false},
	{"PostRemoveContainer", "RemoveContainer", false},
	{"PreStopPodSandbox", "StopPodSandbox", false},
	{"PostStopPodSandbox", "StopPodSandbox", false},
	{"PreRemovePodSandbox", "RemovePodSandbox", false},
	{"PostRemovePodSandbox", "RemovePodSandbox", false},
	{"PreExec", "Exec", true},
	{"PostExec", "Exec", false},
	{"PreExecSync", "ExecSync", true},
	{"PostExecSync", "ExecSync", false},
	{"PreAttach", "Attach", true},
	{"PostAttach", "Attach", false},
	{"PrePortForward", "PortForward", true},
	{"PostPortForward", "PortForward", false},
	{"PrePullImage", "PullImage", true},
	{"PostPullImage", "PullImage", false},
	{"PreRemoveImage", "RemoveImage", true},
	{"PostRemoveImage", "RemoveImage", false},
}

// outOfTime is the hook whose plugin critest leaves no time once: the spec "public
// image should timeout if requested" pulls with a deadline of a millisecond.
const outOfTime = "PrePullImage"

// annotateHooks are the hooks of the annotate plugin: those in which annotations are writable.
var annotateHooks = []hook{allHooks[0], allHooks[2], allHooks[6]}

// variant is a way through wasmproxy.
type variant struct {
	name    string
	plugins []node.Plugin
	hooks   []hook
	changes bool // every call with a hook
}

var (
	bare     = variant{"through wasmproxy", nil, nil, false}
	noop     = variant{"with a plugin that does nothing on every hook", []node.Plugin{node.Noop}, allHooks, false}
	annotate = variant{"with a plugin that annotates in every pre hook", []node.Plugin{node.Annotate}, annotateHooks, true}
)

func TestNoop(t *testing.T) {
	noop.run(t, func(t *testing.T, got specs.Results) { holdAgainst(t, got, readExpected(t)) })
}

func TestFourWays(t *testing.T) {
	expected := readExpected(t)
	var direct specs.Results
	t.Run("direct", func(t *testing.T) {
		direct = run(t, node.StartRuntime(t).Endpoint)
		holdAgainst(t, direct, expected)
	})
	for _, v := range []variant{bare, noop, annotate} {
		t.Run(v.name, func(t *testing.T) {
			v.run(t, func(t *testing.T, got specs.Results) { reportLost(t, direct, got, expected) })
		})
	}
}

// run runs critest on a node of its own, and then checks its results and wasmproxy's account:
// what they find stands below the logs that the node shows if it fails.
func (v variant) run(t *testing.T, check func(*testing.T, specs.Results)) {
	t.Helper()
	var got specs.Results
	var proxy *node.Proxy
	var served node.Served
	ran := t.Run("node", func(t *testing.T) {
		endpoint := node.StartRuntime(t).ProxyEndpoint
		proxy = node.StartProxy(t, v.plugins...)
		got = run(t, endpoint)
		updateContainer(t)
		served = proxy.Stop(t)
	})
	if !ran {
		return
	}
	checkServed(t, served, v.hooks)
	checkChanges(t, proxy, served, v.changes)
	check(t, got)
}

// run runs critest against an endpoint.
func run(t *testing.T, endpoint string) specs.Results {
	t.Helper()
	start := time.Now()
	report := filepath.Join(t.TempDir(), "junit.xml")
	cmd := exec.CommandContext(t.Context(), isolation.Current().Program("critest"),
		"--runtime-endpoint="+endpoint, "--image-endpoint="+endpoint, "--config=/dev/null",
		"--ginkgo.junit-report="+report, "--ginkgo.seed=1", "--ginkgo.skip="+masked, "--ginkgo.no-color")
	log, failure := node.Run(t, "critest", cmd) // it fails when a spec does; the report says which
	got, err := readReport(report)
	if err != nil {
		t.Fatalf("%v; critest ended with %v, its output is in %s", err, failure, log)
	}
	t.Logf("critest: %d passed, %d failed, %d skipped in %.0f s",
		got.Count(specs.Passed), got.Count(specs.Failed), got.Count(specs.Skipped), time.Since(start).Seconds())
	return got
}

// holdAgainst compares a run with the committed table. A spec that the table
// has as skipped may pass: a kernel may have more than that of the table.
func holdAgainst(t *testing.T, got, want specs.Results) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		mayPass := want[name] == specs.Skipped || want[name] == varies
		mayFail := want[name] == varies
		if got[name] != want[name] && !(got[name] == specs.Passed && mayPass) && !(got[name] == specs.Failed && mayFail) {
			t.Errorf("%s: got %q, want %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s, and it is not in the table", name, got[name])
		}
	}
}

// reportLost fails for every spec that passed directly and not through the proxy,
// unless it may fail directly as well.
func reportLost(t *testing.T, direct, proxied, expected specs.Results) {
	t.Helper()
	lost := 0
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		if direct[name] == specs.Passed && proxied[name] != specs.Passed && expected[name] != varies {
			t.Errorf("lost through wasmproxy: %s: %s", name, proxied[name])
			lost++
		}
	}
	t.Logf("lost: %d of %d", lost, direct.Count(specs.Passed))
	if direct.Count(specs.Passed) == 0 {
		t.Error("no spec passed directly: there is nothing to compare with")
	}
}

// updateContainer makes through wasmproxy the one call with a hook that critest does not make.
func updateContainer(t *testing.T) {
	t.Helper()
	client := node.DialCRI(t, node.RuntimeKind().ProxyEndpoint)
	id := client.RunContainer(t, node.Workload{Name: "updated", Resources: &cri.LinuxContainerResources{CpuShares: 512}})
	_, err := client.UpdateContainerResources(t.Context(), &cri.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: &cri.LinuxContainerResources{CpuShares: 256},
	})
	if err != nil {
		t.Errorf("updating a container: %v", err)
	}
}

// checkServed prints wasmproxy's account and demands that the plugins were asked
// whenever they have a hook, and never else, and that no hook failed.
func checkServed(t *testing.T, served node.Served, hooks []hook) {
	t.Helper()
	for _, method := range slices.Sorted(maps.Keys(served.Calls)) {
		t.Logf("calls: %5d %s", served.Calls[method], method)
	}
	for _, name := range slices.Sorted(maps.Keys(served.Hooks)) {
		t.Logf("hooks: %5d %s", served.Hooks[name], name)
	}
	if served.Calls["RunPodSandbox"] == 0 {
		t.Error("wasmproxy saw no RunPodSandbox: critest did not go through it")
	}
	for _, h := range hooks {
		asked, calls := served.Hooks[h.name], served.Calls[h.method]
		if asked == 0 || asked > calls || h.every && asked != calls {
			t.Errorf("hook %s was asked %d times in %d calls", h.name, asked, calls)
		}
	}
	delete(served.Hooks, "Tick") // which comes with the time, not with calls
	if len(served.Hooks) != len(hooks) {
		t.Errorf("%d hooks were asked, want %d", len(served.Hooks), len(hooks))
	}
	if served.HookFailures[outOfTime] == 1 {
		delete(served.HookFailures, outOfTime)
	}
	if len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
}

// checkChanges demands that the plugin changed every request that it was asked about, or none.
func checkChanges(t *testing.T, proxy *node.Proxy, served node.Served, all bool) {
	t.Helper()
	changes, want := 0, 0
	proxy.Records(t, "plugin changed field", func([]byte) error {
		changes++
		return nil
	})
	if all {
		for _, asked := range served.Hooks {
			want += asked
		}
	}
	t.Logf("changed requests: %d", changes)
	if changes != want {
		t.Errorf("%d requests were changed, want %d", changes, want)
	}
}
