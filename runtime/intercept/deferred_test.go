package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// neighbour finds the container c1.
func neighbour(ev plugin.Event) (abi.Object, error) {
	o, errno := ev.Find(abi.ByContainerID, "c1", nil)
	if errno != abi.OK {
		return 0, errno
	}
	return o, nil
}

// squeeze changes c1, which runs in the group of scratchGroup.
func squeeze(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	o, err := neighbour(ev)
	return errors.Join(err,
		adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000), adj.SetText(o, abi.Resources+abi.CpusetCpus, "1"),
		adj.WriteFile(o, "memory.high", "4096000"))
}

// second is a call about another pod than that of c1.
func (n *node) second() error {
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{}},
		&runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod2"})
	if err == nil {
		err = n.queue.Drain(n.t.Context())
	}
	return err
}

// What a plugin wants of another container is one update that goes straight to
// the runtime after the call, with what the kernel would refuse it for out of the
// way, and the store follows it.
func TestWriteToAnotherContainer(t *testing.T) {
	for _, hook := range []abi.Hook{abi.PreRunPodSandbox, abi.PostRunPodSandbox} {
		fs, _, dir := scratchGroup(t)
		n := newNode(t, nil, withCgroups(fs))
		n.runPod()
		_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
		n.must(err)
		n.must(os.WriteFile(filepath.Join(dir, "cpu.max.burst"), []byte("30000\n"), 0o644))
		m := n.with(withCgroups(fs), on(hook, squeeze), on(abi.PreUpdateContainerResources, func(context.Context, plugin.Event, *plugin.Adjustment) error {
			t.Error("the proxy's own update has a hook")
			return nil
		}))
		var during string
		m.backend.hear = func() { during = content(t, dir, "cpu.max.burst") }
		m.must(m.second())
		want := []*runtimeapi.UpdateContainerResourcesRequest{{
			ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 20_000, CpuPeriod: 100_000, CpusetCpus: "1"},
		}}
		if diff := cmp.Diff(want, m.backend.updates, protocmp.Transform()); diff != "" {
			t.Errorf("%v: updates (-want +got):\n%s", hook, diff)
		}
		record, _ := m.store.Container("c1")
		resources := record.Config.GetLinux().GetResources()
		if resources.GetCpuQuota() != 20_000 || resources.GetCpuShares() != 512 || m.wish("c1", "memory.high") != "4096000" {
			t.Errorf("%v: the store has %v, and memory.high is to be %s", hook, resources, m.wish("c1", "memory.high"))
		}
		if high, after := content(t, dir, "memory.high"), content(t, dir, "cpu.max.burst"); high != "4096000" || during != "0" || after != "30000" {
			t.Errorf("%v: memory.high is %s, cpu.max.burst %s during the update and %s after it", hook, high, during, after)
		}
	}
}

// with is a node with the same store and other plugins.
func (n *node) with(opt option, members ...plugin.Member) *node {
	m := newNode(n.t, members, opt, withStore(n))
	m.store = n.store
	return m
}

// Plugins that want different things of another container conflict, as over
// the event's own, and later ones see what earlier ones changed.
func TestConflictOverAnotherContainer(t *testing.T) {
	var errs []error
	var saw int64
	give := func(v int64) function {
		return func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			o, err := neighbour(ev)
			errs = append(errs, errors.Join(err, adj.SetInt64(o, abi.Resources+abi.CPUQuota, v)))
			saw, _ = ev.Int64(o, abi.Resources+abi.CPUQuota)
			return nil
		}
	}
	first, second := on(abi.PreRunPodSandbox, give(20_000)), on(abi.PreRunPodSandbox, give(30_000))
	second.ID = "20-later"
	n := newNode(t, []plugin.Member{first, second})
	n.runPod()
	if errs[0] == nil { // the first call is of pod1 itself, and c1 is not there yet
		t.Fatal("c1 was found before it was made")
	}
	errs = nil
	n.must(n.second())
	if errs[0] != nil || !errors.Is(errs[1], abi.Conflict) || saw != 20_000 {
		t.Errorf("errors %v, the second saw %d", errs, saw)
	}
	if len(n.backend.updates) != 1 || n.backend.updates[0].GetLinux().GetCpuQuota() != 20_000 {
		t.Errorf("updates %v", n.backend.updates)
	}
	if record, _ := n.store.Container("c1"); record.Config.GetLinux().GetResources().GetCpuQuota() != 20_000 {
		t.Errorf("the store has %v", record.Config)
	}
}

// The call's own container is not written to by a handle while it can be by
// its number; other handles of one object are the same.
func TestHandlesAreStable(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreStartContainer, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, _ := neighbour(ev)
		pod, _ := ev.Find(abi.ByPodName, "prod/web", nil)
		again, _ := ev.Find(abi.ByPodUID, "u1", nil)
		all, _, errno := ev.Pods("prod", nil)
		in, _, _ := ev.Containers(again, nil)
		none, _, _ := ev.Pods("other", nil)
		if pod != again || errno != abi.OK || !slices.Equal(all, []abi.Object{pod}) || !slices.Equal(in, []abi.Object{o}) || len(none) != 0 {
			t.Errorf("handles %d, %d, %v, %v, %v", pod, again, all, in, none)
		}
		if !ev.Own(o) || !ev.Own(pod) || ev.Own(abi.Container) || ev.Kind(o) != abi.Container || ev.Kind(pod) != abi.Pod {
			t.Error("a handle does not know what it is")
		}
		if err := adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000); !errors.Is(err, abi.ReadOnly) {
			t.Errorf("writing to the event's own container by a handle: %v", err)
		}
		return nil
	})})
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
}

// A failure is logged with the plugin and the field, and the call goes on;
// nothing is done if the call itself fails.
func TestWriteToAnotherContainerFails(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, nil, withCgroups(fs))
	n.runPod()
	m := n.with(withCgroups(fs), on(abi.PreRunPodSandbox, squeeze))
	m.fails = errors.New("no")
	if err := m.second(); !errors.Is(err, m.fails) || len(m.backend.updates) > 0 {
		t.Errorf("error %v, updates %v", err, m.backend.updates)
	}
	m.fails, m.backend.refuses = nil, errors.New("no such container")
	m.must(m.second())
	log := m.log.String()
	for _, want := range []string{"deferred update failed", `"plugin":"10-test"`, `"field":"container.resources.cpu_quota"`, "no such container"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	record, _ := m.store.Container("c1")
	if record.Config.GetLinux().GetResources().GetCpuQuota() != 50_000 {
		t.Errorf("the store has %v", record.Config)
	}
	// The container has not started: its file is written when it does.
	if got := content(t, dir, "memory.high"); got != "max" || n.wish("c1", "memory.high") != "4096000" {
		t.Errorf("memory.high is %s, and %s is noted", got, n.wish("c1", "memory.high"))
	}
}

// Files of cgroups are read by their v2 names, of the event's pod and container and by handle.
// TestReadFileOfWhatIsToBe reads of a container that has no cgroup yet.
func TestReadFileOfWhatIsToBe(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	asked := false
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		asked = true
		if _, errno := plugin.ReadFile(t.Context(), ev, abi.Container, "cpu.stat"); errno != abi.NotFound {
			t.Errorf("got %v", errno)
		}
		return nil
	})}, withCgroups(fs))
	n.runPod()
	_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c9"})
	n.must(err)
	if !asked {
		t.Error("no event came")
	}
}

func TestReadFile(t *testing.T) {
	fs, pod, container := scratchGroup(t)
	for dir, stat := range map[string]string{pod: "usage_usec 5", container: "usage_usec 3"} {
		if err := os.WriteFile(filepath.Join(dir, "cpu.stat"), []byte(stat+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := newNode(t, []plugin.Member{on(abi.PreStartContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		o, _ := neighbour(ev)
		for o, want := range map[abi.Object]string{abi.Pod: "usage_usec 5", abi.Container: "usage_usec 3", o: "usage_usec 3"} {
			if got, errno := plugin.ReadFile(t.Context(), ev, o, "cpu.stat"); got != want || errno != abi.OK {
				t.Errorf("object %d: %q, %v", o, got, errno)
			}
		}
		for file, want := range map[string]abi.Errno{"cgroup.procs": abi.Denied, "../cpu.stat": abi.Denied, "memory.stat": abi.Unsupported} {
			if _, errno := plugin.ReadFile(t.Context(), ev, abi.Pod, file); errno != want {
				t.Errorf("%s: %v, want %v", file, errno, want)
			}
		}
		for o, want := range map[abi.Object]abi.Errno{abi.Event: abi.Invalid, abi.Node: abi.Unsupported} { // its root has no such file
			if _, errno := plugin.ReadFile(t.Context(), ev, o, "cpu.stat"); errno != want {
				t.Errorf("object %d: %v, want %v", o, errno, want)
			}
		}
		return nil
	})}, withCgroups(fs))
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
}

// give sets the quota of c1, from the making of another pod.
func give(quota int64) plugin.Member {
	return on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, err := neighbour(ev)
		if err != nil {
			return nil // it is yet to be made
		}
		return adj.SetInt64(o, abi.Resources+abi.CPUQuota, quota)
	})
}

// update is kubelet's own of c1.
func (n *node) update(quota int64) error {
	_, err := n.call(n.t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: quota},
	}, &runtimeapi.UpdateContainerResourcesResponse{})
	return err
}

// What a plugin wants of a container that kubelet updates at the moment comes after
// that, and is what stays.
func TestWriteWhileKubeletUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, []plugin.Member{give(20_000)})
		n.runPod()
		n.late = true
		n.updating = func() {
			n.updating = nil
			if _, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod2"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if len(n.backend.updates) > 0 {
				t.Error("two updates of one container are under way")
			}
		}
		n.must(n.update(40_000))
		n.must(n.queue.Drain(t.Context()))
		if record, _ := n.store.Container("c1"); len(n.backend.updates) != 1 || record.Config.GetLinux().GetResources().GetCpuQuota() != 20_000 {
			t.Errorf("%d updates of the plugin's, the store has %v", len(n.backend.updates), record.Config.GetLinux())
		}
	})
}

// An update of kubelet's that comes while a plugin's write is under way waits for
// it, and its hook sees what it did.
func TestKubeletUpdatesWhileAPluginWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saw int64
		n := newNode(t, []plugin.Member{give(20_000), on(abi.PreUpdateContainerResources, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			saw, _ = ev.Int64(abi.Container, abi.Resources+abi.CPUQuota)
			return nil
		})})
		n.runPod()
		n.late = true
		gate, came := make(chan struct{}), false
		n.backend.hear = func() { <-gate }
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod2"})
		n.must(err)
		synctest.Wait() // for the write to begin
		n.updating = func() { came = true }
		done := make(chan error, 1)
		go func() { done <- n.update(0) }()
		synctest.Wait()
		if came {
			t.Error("two updates of one container are under way")
		}
		close(gate)
		if n.must(<-done); !came || saw != 20_000 {
			t.Errorf("kubelet's update came: %v; its hook saw a quota of %d", came, saw)
		}
	})
}

// What kubelet gives a container while a plugin is about to change it, from an event of another pod, comes back after the plugin.
func TestKubeletUpdatesBeforeAPluginWrites(t *testing.T) {
	n := newNode(t, nil)
	n.runPod()
	m := n.with(func(*intercept.Options) {}, on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, err := neighbour(ev)
		return errors.Join(err, adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000), n.update(40_000))
	}))
	m.must(m.second())
	m.hasField("cpu_quota", "10-test", "20000", "40000", "20000")
}

// After a call its own container can be written by number and by handle. To plugins
// that want different things it is one container.
func TestConflictOverTheOwnContainerByHandle(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	for _, byHandle := range []bool{false, true} {
		var errs []error
		write := func(id, value string, byHandle bool) plugin.Member {
			m := on(abi.PostStartContainer, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
				o := abi.Container
				if byHandle {
					o, _ = neighbour(ev)
				}
				errs = append(errs, adj.WriteFile(o, "memory.high", value))
				return nil
			})
			m.ID = id
			return m
		}
		n := newNode(t, []plugin.Member{write("10-first", "4096000", byHandle), write("20-other", "8192000", !byHandle), write("30-same", "4096000", !byHandle)}, withCgroups(fs))
		n.runPod()
		n.must(n.startC1())
		n.must(n.queue.Drain(t.Context()))
		if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], abi.Conflict) || errs[2] != nil {
			t.Errorf("the first by handle: %v; errors %v", byHandle, errs)
		}
	}
}

// TestFullNodeLosesNoUpdate has Ticks that want a quota of each of 2,000 containers, while the runtime takes 40 ms
// for an update: it gets all, a few at a time.
func TestFullNodeLosesNoUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, containers = 500, 4
		n := newNode(t, nil)
		for p := range pods {
			pod := fmt.Sprint("pod", p)
			config := podConfig()
			config.Metadata.Uid, config.Metadata.Name = pod, pod
			_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: pod})
			n.must(err)
			for c := range containers {
				req := createRequest()
				req.PodSandboxId, req.Config.Metadata.Name = pod, fmt.Sprint("c", c)
				_, err = n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: fmt.Sprint(pod, "-", c)})
				n.must(err)
			}
		}
		var under, most atomic.Int32
		slow := func() {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(40 * time.Millisecond)
			under.Add(-1)
		}
		m := n.with(func(o *intercept.Options) {
			o.Backend = &slowBackend{Backend: o.Backend, slow: slow}
			o.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(o.Observer, 0, m...) }
		})
		start := time.Now()
		var ticks sync.WaitGroup
		for part := range 10 {
			ticks.Go(func() {
				intercept.Tick(t.Context(), m.options, on(abi.Tick, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) (err error) {
					all, _, _ := ev.Containers(abi.Node, nil)
					for _, c := range all[part*200 : (part+1)*200] {
						err = errors.Join(err, adj.SetInt64(c, abi.Resources+abi.CPUQuota, 20_000))
					}
					return err
				}), "")
			})
		}
		ticks.Wait()
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		for _, id := range m.options.Ledger.Objects() {
			if v := m.options.Ledger.Record(id).Values()[enforce.Field("cpu_quota")]; v.Last != "20000" || *v.Kubelet != "50000" {
				t.Fatalf("%v: %+v", id, v)
			}
		}
		if objects, values := m.options.Ledger.Len(); objects != pods*containers || values != pods*containers || most.Load() > 8 {
			t.Errorf("%d containers have %d values, with %d updates at once; the log:\n%s", objects, values, most.Load(), m.log)
		}
	})
}

// slowBackend takes its time for updates, of which there are several at once.
type slowBackend struct {
	enforce.Backend
	slow func()
}

func (b *slowBackend) UpdateContainerResources(context.Context, *runtimeapi.UpdateContainerResourcesRequest, ...grpc.CallOption) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	b.slow()
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// TestRefusedUpdateIsTriedAgain keeps what a plugin wants of another container while the runtime refuses it, which is told, also
// on a node without a cgroup file system. Scans leave the runtime alone for a minute.
func TestRefusedUpdateIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events observe.Recorder
		n := newNode(t, []plugin.Member{give(20_000)}, withObserver(&events))
		n.runPod()
		n.begin()
		n.backend.refuses = errDown
		n.must(n.second())
		n.options.Scan(t.Context())
		n.must(n.queue.Drain(t.Context()))
		n.hasField("cpu_quota", "10-test", "20000", "50000", "50000")
		if failed := observe.All[*observe.DeferredUpdateFailed](events.Take()); len(failed) != 1 || len(n.backend.updates) != 1 {
			t.Errorf("%d failures are told, and %d updates are sent", len(failed), len(n.backend.updates))
		}
		n.backend.refuses = nil
		time.Sleep(time.Minute)
		n.options.Scan(t.Context())
		n.must(n.queue.Drain(t.Context()))
		n.hasField("cpu_quota", "10-test", "20000", "50000", "20000")
	})
}

// TestNextPluginsFieldFollows removes the plugin whose value of a field the runtime has, where another one wants
// another value: that is sent.
func TestNextPluginsFieldFollows(t *testing.T) {
	n := newNode(t, []plugin.Member{give(20_000)})
	n.runPod()
	n.must(n.second())
	id := enforce.ID{Pod: "u1", Container: "c1"}
	n.options.Ledger.Record(id).Ask(enforce.Asked{Target: enforce.Field("cpu_quota"), Wish: enforce.Wish{Plugin: "20-next", Hook: abi.Tick, Value: "30000"}})
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	n.hasField("cpu_quota", "20-next", "30000", "50000", "30000")
}

// TestPluginGoesWhileItsFieldIsSent removes a plugin while the runtime has the update with its value: kubelet's is sent after it.
func TestPluginGoesWhileItsFieldIsSent(t *testing.T) {
	n := newNode(t, []plugin.Member{give(20_000)})
	n.runPod()
	n.backend.hear = func() {
		n.backend.hear = nil
		n.options.Withdraw(t.Context(), removed("10-test"))
	}
	n.must(n.second())
	n.must(n.queue.Drain(t.Context()))
	var sent []int64
	for _, u := range n.backend.updates {
		sent = append(sent, u.GetLinux().GetCpuQuota())
	}
	if !slices.Equal(sent, []int64{20_000, 50_000}) || !n.options.Ledger.Empty() {
		t.Errorf("the runtime is sent %d, and there are records of %v", sent, n.options.Ledger.Objects())
	}
}

// TestUpdateOfAContainerThatHasEnded undoes a value of a container that has ended by itself, which the store does not
// know: a runtime that refuses the update is asked once.
func TestUpdateOfAContainerThatHasEnded(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{give(20_000)}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.second())
	n.must(os.RemoveAll(dir))
	n.backend.updates, n.backend.refuses = nil, status.Error(codes.Unknown, "container is not running")
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	for range 3 {
		n.options.Scan(t.Context())
		n.must(n.queue.Drain(t.Context()))
	}
	if len(n.backend.updates) != 1 || !n.options.Ledger.Empty() {
		t.Errorf("%d updates are sent, and there are records of %v", len(n.backend.updates), n.options.Ledger.Objects())
	}
}

// TestKilledInAnUpdate kills the proxy after the runtime has accepted a plugin's value in kubelet's update, and before
// that is noted: the next process knows that it is the plugin's.
func TestKilledInAnUpdate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	set := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 20_000)
	})
	n := newNode(t, []plugin.Member{set}, withLedger(openLedger(t, dir)))
	n.runPod()
	n.begin()
	var m *node
	n.updating = func() { // as the next process finds it
		m = newNode(t, nil, withLedger(openLedger(t, dir)), func(o *intercept.Options) { o.Store = n.store })
	}
	n.must(n.update(0))
	n.must(n.queue.Drain(t.Context()))
	m.hasField("cpu_quota", "10-test", "20000", "50000", "50000")
	resync(t.Context(), &m.options.Enforcer)
	m.must(m.queue.Drain(t.Context()))
	m.hasField("cpu_quota", "10-test", "20000", "50000", "20000")
	n.fails, n.updating = errors.New("refused"), nil
	other := newNode(t, []plugin.Member{set}, func(o *intercept.Options) { o.Store = n.store })
	other.fails = errors.New("refused")
	if err := other.update(0); err == nil || !other.options.Ledger.Empty() {
		t.Errorf("after a refused update (%v) there are records of %v", err, other.options.Ledger.Objects())
	}
}

// What plugins want in a call that ends without the runtime's answer stays: the runtime may have done it.
func TestCallWithoutAnAnswer(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Unavailable} { // the latter when the runtime's process ends
		t.Run(code.String(), func(t *testing.T) { callWithoutAnAnswer(t, status.Error(code, "no answer")) })
	}
}

func callWithoutAnAnswer(t *testing.T, late error) {
	fs, dir, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "4096000"))}, withCgroups(fs))
	n.fails = late
	run := &runtimeapi.RunPodSandboxRequest{Config: podConfig()}
	if _, err := n.call(t.Context(), "RunPodSandbox", run, &runtimeapi.RunPodSandboxResponse{}); !errors.Is(err, late) {
		t.Fatal(err)
	}
	if got := content(t, dir, "memory.high"); got != "4096000" {
		t.Errorf("memory.high of a pod that may run is %s", got)
	}

	n.fails = nil
	n.runPod()
	n.begin()
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 20_000)
	}))
	m.fails = late
	if err := m.updateC1(nil); !errors.Is(err, late) {
		t.Fatal(err)
	}
	m.withdraw("10-test")
	want := []*runtimeapi.UpdateContainerResourcesRequest{{
		ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000},
	}}
	if diff := cmp.Diff(want, m.backend.updates, protocmp.Transform()); diff != "" {
		t.Errorf("updates of a container that may have the plugin's quota (-want +got):\n%s", diff)
	}
}
