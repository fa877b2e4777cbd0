package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// quotaAndBurst writes both files of a container.
func quotaAndBurst(quota, burst int) function {
	return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.WriteFile(abi.Container, "cpu.max.burst", fmt.Sprint(burst)), adj.WriteFile(abi.Container, "cpu.max", fmt.Sprint(quota)))
	}
}

// The kernel refuses a quota below the burst, and a burst above the quota. A quota and a burst
// that one event sets, that a later event lowers, and that an undo takes back are there at once.
func TestQuotaAndBurstAtOnce(t *testing.T) {
	k := newKernelGroup(t, "")
	if err := k.quota(50_000); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, quotaAndBurst(100_000, 80_000))}, withCgroups(k.fs))
	want := func(quota, burst, when string) {
		t.Helper()
		max, err := k.fs.Read(k.parent+"/"+containerID, "cpu.max")
		if got := k.burst(t); err != nil || max != quota+" 100000" || got != burst {
			t.Errorf("%s cpu.max is %q, %v, and the burst %s; want %s and %s", when, max, err, got, quota, burst)
		}
	}
	n.create(k.parent)
	n.must(n.start())
	want("100000", "80000", "with the plugin")
	update := func(quota, burst int) {
		m := n.with(withCgroups(k.fs), on(abi.PreUpdateContainerResources, quotaAndBurst(quota, burst)))
		_, err := m.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: containerID}, &runtimeapi.UpdateContainerResourcesResponse{})
		n.must(err)
	}
	update(60_000, 80_000)
	want("60000", "60000", "with a smaller quota")
	update(30_000, 20_000)
	want("30000", "20000", "with less of both")
	update(100_000, 80_000)
	want("100000", "80000", "with more of both")
	n.withdraw("10-test")
	want("50000", "0", "without the plugin")
	if log := n.log.String(); strings.Contains(log, "invalid") {
		t.Errorf("the log has\n%s", log)
	}
	if left := n.options.Ledger.Objects(); len(left) > 0 {
		t.Errorf("the records of %v remain", left)
	}
}

// A scan that puts both files back writes the quota first, and looks at the burst twice: it counts one
// repair. The sixth in a row is a fight, of which there is one event.
func TestRepairsOfQuotaAndBurstAreCountedOnce(t *testing.T) {
	for name, quotaToo := range map[string]bool{"both are overwritten": true, "the burst is overwritten": false} {
		t.Run(name, func(t *testing.T) {
			fs, _, dir := scratchGroup(t)
			var events observe.Recorder
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, quotaAndBurst(100_000, 80_000))}, withCgroups(fs), withObserver(&events))
			n.runPod()
			n.begin()
			scan := func(quotaToo bool) (quota, burst string) {
				put(t, dir, "cpu.max.burst", "0")
				if quotaToo {
					put(t, dir, "cpu.max", "50000 100000")
				}
				n.options.Scan(t.Context())
				return content(t, dir, "cpu.max"), content(t, dir, "cpu.max.burst")
			}
			for k := range 5 {
				if quota, burst := scan(quotaToo); quota != "100000" || burst != "80000" {
					t.Fatalf("after scan %d cpu.max is %s, and the burst %s", k+1, quota, burst)
				}
			}
			if _, burst := scan(true); burst != "0" {
				t.Errorf("after the sixth scan the burst is %s", burst)
			}
			fights := 0
			for _, e := range observe.All[*observe.CgroupFileFought](events.Take()) {
				if e.File == "cpu.max.burst" {
					fights++
				}
			}
			if got := n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Values()[enforce.File("cpu.max.burst")].Drift.Repairs; got != 5 || fights != 1 {
				t.Errorf("%d repairs of the burst, and %d fights", got, fights)
			}
		})
	}
}

// The burst of a pod goes down with the limit that plugins raised, and is not taken for kubelet's.
func TestBurstOfAPodWhoseLimitGoesDown(t *testing.T) {
	fs, pod, _ := scratchGroup(t)
	burst := on(abi.PreRunPodSandbox, write(abi.Pod, "cpu.max.burst", "80000"))
	n := newNode(t, []plugin.Member{burst, doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
	n.runPodWith(podWithoutOverhead(), createRequest())
	n.begin()
	n.options.Scan(t.Context())
	if limit, got := content(t, pod, "cpu.max"), content(t, pod, "cpu.max.burst"); limit != "max 100000" || got != "80000" {
		t.Fatalf("cpu.max is %s, cpu.max.burst is %s", limit, got)
	}
	_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
	n.must(err)
	if limit, got := content(t, pod, "cpu.max"), content(t, pod, "cpu.max.burst"); limit != "50000 100000" || got != "50000" {
		t.Errorf("without the container cpu.max is %s, cpu.max.burst is %s", limit, got)
	}
	n.withdraw("10-test")
	if got := content(t, pod, "cpu.max.burst"); got != "0" {
		t.Errorf("without the plugin cpu.max.burst is %s", got)
	}
}
