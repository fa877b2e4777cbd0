package intercept_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// scratch is a tree of plain files in place of a cgroup mount; the kernel's own
// is tried in package cgroup and end to end.
func scratch(t *testing.T, mode string) *cgroup.FS {
	t.Helper()
	fs, err := cgroup.Open(t.TempDir(), mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

// scratchGroup is a v2 tree with the groups of pod u1 and its container c1.
func scratchGroup(t *testing.T) (fs *cgroup.FS, pod, container string) {
	t.Helper()
	root := t.TempDir()
	pod = filepath.Join(root, "kubepods/burstable/podu1")
	container = filepath.Join(pod, "c1")
	for _, dir := range []string{pod, container} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, value := range map[string]string{"cpu.idle": "0", "cpu.max.burst": "0", "cpu.max": "50000 100000", "memory.high": "max"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(value+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	fs, err := cgroup.Open(root, "v2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs, pod, container
}

func content(t *testing.T, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func write(o abi.Object, file, value string) function {
	return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.WriteFile(o, file, value)
	}
}

func TestFilesOfAContainerAreWrittenWhenItHasStarted(t *testing.T) {
	var events observe.Recorder
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{
		on(abi.PreCreateContainer, write(abi.Container, "cpu.idle", "1")),
		on(abi.PostCreateContainer, write(abi.Container, "memory.high", "4096000")),
	}, withCgroups(fs), func(o *intercept.Options) { o.Observer = observe.Sinks{o.Observer, &events} })
	n.runPod()
	if got := content(t, dir, "cpu.idle"); got != "0" {
		t.Errorf("cpu.idle is %s before the container has started", got)
	}
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "1" || high != "4096000" {
		t.Errorf("cpu.idle is %s, memory.high is %s", idle, high)
	}
	var told []string
	for _, e := range observe.All[*observe.CgroupFileWritten](events.Take()) {
		told = append(told, e.ContainerID+" "+e.File+" "+e.Value)
	}
	if slices.Sort(told); !slices.Equal(told, []string{"c1 cpu.idle 1", "c1 memory.high 4096000"}) {
		t.Errorf("the events are of %q", told)
	}
}

// A start may have gone past the proxy, so an update writes its files whatever the store says.
func TestFilesOfAnUpdateAreWrittenAtOnce(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, write(abi.Container, "cpu.idle", "1"))}, withCgroups(fs))
	n.runPod()
	update := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{}}
	_, err := n.call(t.Context(), "UpdateContainerResources", update, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	if got := content(t, dir, "cpu.idle"); got != "1" {
		t.Errorf("cpu.idle is %s", got)
	}
}

// No pre hook makes StartContainer wait for a slow PostCreateContainer: what
// that wants is written when it says so.
func TestFilesOfAHookThatIsLate(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	started := make(chan struct{})
	n := newNode(t, []plugin.Member{on(abi.PostCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		<-started
		return adj.WriteFile(abi.Container, "memory.high", "4096000")
	})}, withCgroups(fs))
	n.late = true
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	_, err = n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	_, err = n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	close(started)
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "memory.high"); got != "4096000" {
		t.Errorf("memory.high is %s", got)
	}
}

func TestFilesOfAPodAreWrittenBeforeItRuns(t *testing.T) {
	fs, dir, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "8192000"))}, withCgroups(fs))
	n.runPod()
	if got := content(t, dir, "memory.high"); got != "8192000" {
		t.Errorf("memory.high is %s", got)
	}
}

// A pod whose cgroup cannot be written is refused for a plugin that must not be
// ignored, and runs for one that may.
func TestPodFileThatCannotBeWritten(t *testing.T) {
	m := on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "8192000"))
	for _, policy := range []plugin.FailurePolicy{plugin.Ignore, plugin.Fail} {
		m.Policy = policy
		n := newNode(t, []plugin.Member{m}, withCgroups(scratch(t, "v2")))
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
		if (err != nil) != (policy == plugin.Fail) || (n.sent == nil) != (policy == plugin.Fail) {
			t.Errorf("%v: error %v, sent %v", policy, err, n.sent != nil)
		}
	}
}

// A file that a plugin asked for before the container ran is written by StartContainer. If
// that fails, the event names the plugin.
func TestFailureOfAKeptFileNamesThePlugin(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000"))}, withCgroups(scratch(t, "v2")))
	n.runPod()
	n.describe("c1")
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if got := n.log.String(); !strings.Contains(got, `"plugin":"10-test"`) || !strings.Contains(got, `"file":"memory.high"`) {
		t.Errorf("the log says %s", got)
	}
}

// While the runtime updates a container, what the kernel would refuse the
// update for is out of the way; afterwards it is back.
func TestHeldValuesAroundAnUpdate(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.max.burst", "20000"))}, withCgroups(fs))
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if got := content(t, dir, "cpu.max.burst"); got != "20000" {
		t.Fatalf("cpu.max.burst is %s", got)
	}
	var during string
	n.updating = func() {
		during = content(t, dir, "cpu.max.burst")
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("10000 100000\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err = n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 10_000},
	}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	if after := content(t, dir, "cpu.max.burst"); during != "0" || after != "10000" {
		t.Errorf("cpu.max.burst is %s during the update and %s after it, want 0 and 10000 (no more than the quota)", during, after)
	}
}

// TestHeldValuesAroundAnUpdate, where a bypass begins while a plugin has the update.
func TestHeldValuesAroundAnUpdateThatIsCut(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	cut := intercept.NewCut()
	hook := func(_ context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
		cut.Begin()
		return nil
	}
	members := []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.max.burst", "20000")), on(abi.PreUpdateContainerResources, hook)}
	members[1].ID = "20-test"
	n := newNode(t, members, withCgroups(fs), func(o *intercept.Options) { o.Cut = cut })
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	var during string
	n.updating = func() { during = content(t, dir, "cpu.max.burst") }
	frame, err := n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 10_000},
	}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	if n.sent != frame || during != "0" {
		t.Errorf("cpu.max.burst is %s during the update, want 0; the request goes on as it came: %v", during, n.sent == frame)
	}
	if after := content(t, dir, "cpu.max.burst"); after == "0" {
		t.Error("cpu.max.burst is not restored, and the ledger has it to be undone")
	}
}

// A container that a plugin moved to another cgroup parent than its pod's has
// its files there.
func TestFilesOfAContainerWithAParentOfItsOwn(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	elsewhere := filepath.Join(pod, "elsewhere", "c1")
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "memory.high"), []byte("max\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(
			adj.SetText(abi.Pod, abi.PodCgroupParent, "/kubepods/burstable/podu1/elsewhere"),
			adj.WriteFile(abi.Container, "memory.high", "4096000"))
	})}, withCgroups(fs))
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if got := content(t, elsewhere, "memory.high"); got != "4096000" {
		t.Errorf("memory.high is %s", got)
	}
}
