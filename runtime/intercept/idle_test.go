package intercept_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// idle is a node with a group of this kernel, to which a plugin has set cpu.idle. Before that the
// group had 102 shares, which the kernel shows as before; then it has idle.
type idle struct {
	*node
	kernelGroup
	before, idle string
	events       observe.Recorder
}

func newIdle(t *testing.T, o abi.Object) *idle {
	t.Helper()
	i := &idle{kernelGroup: newKernelGroup(t, "")}
	hook := abi.PreCreateContainer
	if o == abi.Pod {
		i.dir, hook = filepath.Dir(i.dir), abi.PreRunPodSandbox
	}
	i.before = i.share(t, 102)
	i.node = newNode(t, []plugin.Member{on(hook, write(o, "cpu.idle", "1"))}, withCgroups(i.fs), withObserver(&i.events))
	i.create(i.parent)
	i.must(i.start())
	i.idle = content(t, i.dir, i.shareFile())
	if got := content(t, i.dir, "cpu.idle"); got != "1" || i.idle == i.before {
		t.Fatalf("cpu.idle is %s, %s is %s", got, i.shareFile(), i.idle)
	}
	return i
}

// undo removes the plugin when the proxy knows no pods.
func (i *idle) undo() {
	i.options.Store = pods.NewStore()
	i.withdraw("10-test")
}

func (i *idle) want(share, when string) {
	i.t.Helper()
	if idle, got := content(i.t, i.dir, "cpu.idle"), content(i.t, i.dir, i.shareFile()); idle != "0" || got != share {
		i.t.Errorf("%s cpu.idle is %s, and %s is %s, want %s", when, idle, i.shareFile(), got, share)
	}
}

// The kernel gives a group that stops being idle its default share, and nobody writes kubelet's
// to a pod again.
func TestUndoOfIdleBringsBackTheShare(t *testing.T) {
	for name, o := range map[string]abi.Object{"pod": abi.Pod, "container": abi.Container} {
		t.Run(name, func(t *testing.T) {
			i := newIdle(t, o)
			i.undo()
			i.want(i.before, "without the plugin")
			if left := i.options.Ledger.Objects(); o == abi.Pod && len(left) > 0 {
				t.Errorf("the records of %v remain", left)
			}
		})
	}
}

// The share that comes back is still kubelet's after something else has ended cpu.idle, and the
// host has repaired that.
func TestUndoOfIdleAfterARepair(t *testing.T) {
	i := newIdle(t, abi.Pod)
	i.write(t, "cpu.idle", "0")
	i.options.Scan(t.Context())
	if got := content(t, i.dir, i.shareFile()); got != i.idle {
		t.Fatalf("%s is %s after the repair", i.shareFile(), got)
	}
	i.undo()
	i.want(i.before, "without the plugin")
}

// TestOverwrittenBetweenWriteAndRead: what something else writes at the very moment is not taken for the kernel's form of the value.
func TestOverwrittenBetweenWriteAndRead(t *testing.T) {
	i := newIdle(t, abi.Container)
	for range 1000 {
		i.write(t, "cpu.idle", "0")
		var repaired atomic.Bool
		var other sync.WaitGroup
		other.Go(func() {
			for !repaired.Load() {
				if content(t, i.dir, "cpu.idle") == "1" {
					i.write(t, "cpu.idle", "0")
					return
				}
			}
		})
		i.options.Repair(t.Context(), "a reload of systemd")
		repaired.Store(true)
		other.Wait()
		i.options.Repair(t.Context(), "a reload of systemd")
		if got := content(t, i.dir, "cpu.idle"); got != "1" {
			t.Fatalf("cpu.idle stays %s", got)
		}
	}
}

// It is what the runtime wrote last, while the host had suspended cpu.idle for that. 1024 shares,
// which are weight 100, are also what the kernel gives a group that stops being idle.
func TestUndoOfIdleAfterAnUpdate(t *testing.T) {
	for shares, weight := range map[int64]int64{700: 700, 1024: 100} {
		t.Run(strconv.FormatInt(shares, 10), func(t *testing.T) {
			i := newIdle(t, abi.Container)
			written := map[int]int64{1: shares, 2: weight}[i.fs.Version()]
			resized := ""
			i.updating = func() { resized = i.share(t, written) }
			_, err := i.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: containerID,
				Linux: &runtimeapi.LinuxContainerResources{CpuShares: shares}}, &runtimeapi.UpdateContainerResourcesResponse{})
			i.must(err)
			i.undo()
			i.want(resized, "without the plugin")
		})
	}
}

// A plugin that asks for 0 itself gets the share back, too.
func TestPluginEndsIdle(t *testing.T) {
	i := newIdle(t, abi.Pod)
	i.with(withCgroups(i.fs), on(abi.PreRunPodSandbox, write(abi.Pod, "cpu.idle", "0"))).create(i.parent) // for another sandbox
	i.want(i.before, "with the plugin's 0")
	i.undo()
	i.want(i.before, "without the plugin")
}

// Of a weight and cpu.idle, the undo of which shows the weight, both are undone at once.
func TestUndoOfIdleAndAWeight(t *testing.T) {
	i := newIdle(t, abi.Pod)
	i.undo()
	both := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.WriteFile(abi.Pod, "cpu.weight", "300"); err != nil {
			return err
		}
		return adj.WriteFile(abi.Pod, "cpu.idle", "1")
	}
	weightFirst := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, write(abi.Pod, "cpu.weight", "300"))}, withCgroups(i.fs))
	weightFirst.create(i.parent)
	n := weightFirst.with(withCgroups(i.fs), on(abi.PreRunPodSandbox, both))
	n.create(i.parent)
	if got := content(t, i.dir, i.shareFile()); got != i.idle {
		t.Fatalf("%s is %s", i.shareFile(), got)
	}
	n.withdraw("10-test")
	i.want(i.before, "without the plugin")
	if log := n.log.String(); strings.Contains(log, "error") {
		t.Errorf("the log has\n%s", log)
	}
}
