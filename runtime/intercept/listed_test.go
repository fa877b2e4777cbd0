package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

var errUndescribed = status.Error(codes.Unknown, "broken")

// list has the backend list pod1 with these running containers, of which it describes the pod alone.
func (n *node) list(containers ...string) {
	n.backend.tellPod("pod1", podConfig())
	n.backend.pod = &runtimeapi.PodSandbox{Id: "pod1", Metadata: podConfig().GetMetadata()}
	n.backend.unknown = errUndescribed
	for _, id := range containers {
		n.backend.listed = append(n.backend.listed, &runtimeapi.Container{
			Id: id, PodSandboxId: "pod1", Metadata: &runtimeapi.ContainerMetadata{Name: id}, State: runtimeapi.ContainerState_CONTAINER_RUNNING,
		})
	}
}

// describe has the backend describe a container from now on.
func (n *node) describe(id string) { n.describeAs(id, createRequest().GetConfig()) }

func (n *node) describeAs(id string, config *runtimeapi.ContainerConfig) {
	info, err := json.Marshal(map[string]any{"config": config, "sandboxID": "pod1"})
	n.must(err)
	if n.backend.containers == nil {
		n.backend.containers = map[string]*runtimeapi.ContainerStatusResponse{}
	}
	n.backend.containers[id] = &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{Id: id, Metadata: config.GetMetadata(), State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		Info:   map[string]string{"info": string(info)},
	}
}

// fill fills the store with what the backend has.
func (n *node) fill() {
	n.t.Helper()
	if err := n.store.Sync(n.t.Context(), &n.backend); err != nil && !errors.As(err, new(*pods.UnreadError)) {
		n.t.Fatal(err)
	}
}

// A plugin has written a file of a container, for which its pod was lifted. After a restart of the proxy
// the runtime lists the container and cannot describe it: its pod keeps the limit.
func TestPodLimitStaysWhileAContainerIsKnownByAList(t *testing.T) {
	fs, pod, container := scratchGroup(t)
	dir := filepath.Join(t.TempDir(), "state")
	file := on(abi.PostStartContainer, write(abi.Container, "cpu.max", "100000 100000"))
	file.Capabilities, file.Rights = abi.AllCapabilities, plugin.Rights{Declared: abi.AllCapabilities, Granted: abi.AllCapabilities}
	n := newNode(t, []plugin.Member{file}, withCgroups(fs), withLedger(openLedger(t, dir)))
	config := podWithoutOverhead()
	n.runPodWith(config, createRequest())
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.wantCPU(pod, "max 100000", "with the plugin's value")

	m := newNode(t, nil, withCgroups(fs), withLedger(openLedger(t, dir)))
	m.list("c1", "c2")
	m.describe("c2")
	m.fill()
	resync(t.Context(), &m.options.Enforcer)
	m.wantCPU(pod, "max 100000", "while the container is known by a list")
	if got := content(t, container, "cpu.max"); got != "100000 100000" {
		t.Errorf("the container has cpu.max %q", got)
	}
	m.describe("c1")
	m.fill()
	resync(t.Context(), &m.options.Enforcer)
	m.wantCPU(pod, "max 100000", "with the container's status")
	m.backend.listed[0].State = runtimeapi.ContainerState_CONTAINER_EXITED
	delete(m.backend.containers, "c1")
	m.store.Clear()
	m.fill()
	m.options.Scan(t.Context())
	m.wantCPU(pod, "50000 100000", "after the list says that the container has ended")
}

// A hook reads what the runtime could not describe when the store was filled, and is called with what
// the list told as long as it cannot.
func TestHookReadsWhatWasKnownByAList(t *testing.T) {
	var quotas []int64
	m := on(abi.PreStopContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		quota, errno := ev.Int64(abi.Container, abi.Resources+abi.CPUQuota)
		if errno != abi.OK {
			quota = int64(errno)
		}
		quotas = append(quotas, quota)
		return nil
	})
	n := newNode(t, []plugin.Member{m})
	n.list("c1")
	n.fill()
	stop := func() {
		_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
		n.must(err)
	}
	stop()
	n.describe("c1")
	stop()
	if want := []int64{int64(abi.Unsupported), 50_000}; !slices.Equal(quotas, want) {
		t.Errorf("the hook reads %d, want %d", quotas, want)
	}
}

// replacing is a node whose plugin replaces an earlier version, which wanted a file of c1, and whose
// runtime lists these containers and describes none. sweeps counts the calls of Synchronize that two
// sweeps bring it to, and tells whether the earlier wish is there.
func replacing(t *testing.T, containers ...string) (n *node, sweeps func(want int, wish bool, when string)) {
	before, _, _ := running(t)
	var told notes
	n, known, m := learning(t, told.take, false, withCgroups(before.options.Cgroups), withLedger(before.options.Ledger), another)
	n.list(containers...)
	n.fill()
	return n, func(want int, wish bool, when string) {
		t.Helper()
		n.must(errors.Join(n.sweep(known, m), n.sweep(known, m), n.queue.Drain(t.Context())))
		if len(told.all) != want {
			t.Errorf("%s Synchronize was called %d times, want %d", when, len(told.all), want)
		}
		if _, ok := n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Owner(enforce.File("cpu.idle")); ok != wish {
			t.Errorf("%s the earlier wish is there: %v, want %v", when, ok, wish)
		}
	}
}

// Synchronize is called again for a pod when the runtime describes what it only listed before. Until
// then wishes of the plugin's earlier version stay.
func TestSynchronizeAgainWithWhatWasKnownByAList(t *testing.T) {
	n, sweeps := replacing(t, "c1")
	sweeps(1, true, "while c1 is known by a list")
	n.describe("c1")
	n.fill()
	sweeps(2, false, "with the status of c1")
}

// So it is if an event of what was only listed has come meanwhile, which has Synchronize called once.
func TestSynchronizeAgainAfterAnEventOfWhatWasKnownByAList(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, false)
	n.list("c1")
	n.fill()
	n.must(errors.Join(n.startC1(), n.startC1(), n.sweep(known, m)))
	n.describe("c1")
	n.fill()
	n.must(errors.Join(n.sweep(known, m), n.sweep(known, m), n.startC1()))
	if want := []string{"Synchronize pod1", "PreStartContainer pod1", "PreStartContainer pod1", "Synchronize pod1", "PreStartContainer pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q, want %q", told.all, want)
	}
}

// The wishes of the earlier version end, too, when what the runtime did not describe has gone.
func TestEarlierWishesEndWithWhatHasGone(t *testing.T) {
	n, sweeps := replacing(t, "c1", "c2")
	n.describe("c1")
	n.fill()
	sweeps(1, true, "while c2 is known by a list")
	n.backend.listed = n.backend.listed[:1]
	n.fill()
	sweeps(2, false, "without c2")
}

// A container that the runtime only listed, because it was being removed, and that has gone since is
// no reason to call Synchronize of a plugin again that replaces no other.
func TestSynchronizeOnceWithWhatHasGone(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, false)
	n.list("c1", "c2")
	n.describe("c1")
	n.fill()
	n.must(n.sweep(known, m))
	n.backend.listed = n.backend.listed[:1]
	n.fill()
	n.must(n.sweep(known, m))
	n.must(n.startC1())
	if want := []string{"Synchronize pod1", "PreStartContainer pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q, want %q", told.all, want)
	}
}
