package intercept_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// remove removes container c1 and its pod.
func (n *node) remove() {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	n.must(err)
	n.removeSandbox("pod1")
}

// A hook may end after its container, or its pod, is removed: nothing would drop a record that is made
// then. That of a pod stays as long as the pod's cgroup.
func TestHooksThatEndAfterARemovalLeaveNoRecord(t *testing.T) {
	for name, test := range map[string]struct {
		hook    abi.Hook
		wish    function
		another bool // the hook is about another pod
		group   bool // the pod's cgroup is there for a while
	}{
		"file of the container":         {hook: abi.PostStartContainer, wish: write(abi.Container, "memory.high", "4096000")},
		"file of the pod":               {hook: abi.PostRunPodSandbox, wish: write(abi.Pod, "memory.high", "4096000")},
		"file of the pod with a cgroup": {hook: abi.PostRunPodSandbox, wish: write(abi.Pod, "memory.high", "4096000"), group: true},
		"values of another container":   {hook: abi.PostRemoveImage, wish: squeeze, another: true},
	} {
		t.Run(name, func(t *testing.T) {
			fs, dir, _ := scratchGroup(t)
			asked, removed := make(chan struct{}), make(chan struct{})
			n := newNode(t, []plugin.Member{on(test.hook, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
				err := test.wish(ctx, ev, adj)
				close(asked)
				<-removed
				return err
			})}, withCgroups(fs))
			n.late = true
			n.runSandbox("pod1")
			_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
			n.must(err)
			n.begin()
			if test.another {
				_, err := n.call(t.Context(), "RemoveImage", &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}}, &runtimeapi.RemoveImageResponse{})
				n.must(err)
			}
			<-asked
			n.remove()
			if !test.group {
				n.must(os.RemoveAll(dir))
			}
			close(removed)
			n.must(n.queue.Drain(t.Context()))
			if got := n.options.Ledger.Objects(); len(got) > 1 || test.group != n.options.Ledger.Record(podU1).Has() {
				t.Errorf("there are records of %v", got)
			}
			n.must(os.RemoveAll(dir))
			n.options.Scan(t.Context())
			if got := n.options.Ledger.Objects(); len(got) > 0 {
				t.Errorf("without the pod's cgroup there are records of %v", got)
			}
		})
	}
}

// A container may be removed while its update is under way, or waits for a slow hook. Nothing notes the
// update then, and the limits of the pod are kubelet's.
func TestUpdateThatEndsAfterARemovalLeavesNoRecord(t *testing.T) {
	for name, test := range map[string]struct {
		has   abi.CapabilitySet
		quota int64
	}{
		"within the pod's limit": {abi.DefaultGrant(), 20_000},
		"above the pod's limit":  {abi.AllCapabilities, 40_000},
	} {
		t.Run(name, func(t *testing.T) {
			fs, dir, _ := scratchGroup(t)
			n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreUpdateContainerResources), test.has)}, withCgroups(fs))
			n.runPod()
			n.begin()
			limit := content(t, dir, "cpu.max")
			n.late = true
			n.updating = func() {
				n.updating = nil
				_, err := n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
				n.must(err)
			}
			n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: test.quota}))
			n.must(n.queue.Drain(t.Context()))
			if got := n.options.Ledger.Objects(); len(got) > 0 || content(t, dir, "cpu.max") != limit {
				t.Errorf("there are records of %v, and cpu.max of the pod is %s", got, content(t, dir, "cpu.max"))
			}
		})
	}
}

// TestContainerThatEndsBeforeItsFilesAreWritten is no failure: the runtime says that it has ended, at once or a moment after its
// cgroup has gone.
func TestContainerThatEndsBeforeItsFilesAreWritten(t *testing.T) {
	const exited, runs = runtimeapi.ContainerState_CONTAINER_EXITED, runtimeapi.ContainerState_CONTAINER_RUNNING
	for _, test := range []struct{ before, after runtimeapi.ContainerState }{{exited, exited}, {runs, exited}, {runs, runs}} {
		fs, _, dir := scratchGroup(t)
		var events observe.Recorder
		n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000"))}, withCgroups(fs), withObserver(&events))
		n.runPod()
		n.describe("c1")
		answers, told := 0, n.backend.containers["c1"].Status
		told.State = test.before
		n.backend.answering = func() {
			if answers++; answers > 3 {
				told.State = test.after
			}
		}
		n.must(os.RemoveAll(dir))
		n.begin()
		failed := observe.All[*observe.CgroupFileFailed](events.Take())
		if ended := test.after == exited; len(failed) > 0 == ended || len(n.options.Ledger.NotHeld()) > 0 == ended {
			t.Errorf("%+v: the failures are %v, and %v do not hold", test, failed, n.options.Ledger.NotHeld())
		}
	}
}

// TestFailureEndsWithItsObject: of a container that has ended, and of a pod whose cgroup is gone, nothing is to hold any more, so that
// what could not be written does not count. The container's cgroup alone is no sign of that.
func TestFailureEndsWithItsObject(t *testing.T) {
	const exited, runs = runtimeapi.ContainerState_CONTAINER_EXITED, runtimeapi.ContainerState_CONTAINER_RUNNING
	for name, test := range map[string]struct {
		of    abi.Object
		state runtimeapi.ContainerState
		stop  string
		left  int
	}{
		"a container that is stopped":          {abi.Container, runs, "StopContainer", 0},
		"a container that ends by itself":      {abi.Container, exited, "", 0},
		"a container whose cgroup is not seen": {abi.Container, runs, "", 1},
		"a pod":                                {abi.Pod, exited, "StopPodSandbox", 0},
		"a pod that runs":                      {abi.Pod, runs, "", 1},
	} {
		fs, pod, container := scratchGroup(t)
		hook := map[abi.Object]abi.Hook{abi.Pod: abi.PreRunPodSandbox, abi.Container: abi.PreCreateContainer}[test.of]
		m := on(hook, write(test.of, "cpu.max.burst", "40000"))
		n := newNode(t, []plugin.Member{m}, withCgroups(fs))
		for _, dir := range []string{pod, container} {
			n.must(os.Remove(filepath.Join(dir, "cpu.max.burst")))
			n.must(os.Mkdir(filepath.Join(dir, "cpu.max.burst"), 0o755)) // nobody can write it
		}
		n.runPod()
		n.describe("c1")
		n.backend.containers["c1"].Status.State = test.state
		n.begin()
		if got := n.options.Ledger.NotHeld(); got["10-test"] != 1 {
			t.Errorf("%s: before the end %v do not hold", name, got)
		}
		n.must(os.RemoveAll(pod))
		switch test.stop {
		case "StopContainer":
			_, err := n.call(t.Context(), test.stop, &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
			n.must(err)
		case "StopPodSandbox":
			_, err := n.call(t.Context(), test.stop, &runtimeapi.StopPodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.StopPodSandboxResponse{})
			n.must(err)
		}
		n.options.Scan(t.Context())
		if got := n.options.Ledger.NotHeld(); got["10-test"] != test.left {
			t.Errorf("%s: after the end %v do not hold, want %d", name, got, test.left)
		}
	}
}
