package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

func withObserver(r *observe.Recorder) option {
	return func(o *intercept.Options) { o.Observer = observe.Sinks{o.Observer, r} }
}

func withLedger(l *enforce.Ledger) option { return func(o *intercept.Options) { o.Ledger = l } }

func (n *node) begin() {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
}

func (n *node) updateC1(r *runtimeapi.LinuxContainerResources) error {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: r}, &runtimeapi.UpdateContainerResourcesResponse{})
	return err
}

func put(t *testing.T, dir, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openLedger(t *testing.T, dir string) *enforce.Ledger {
	t.Helper()
	l, err := enforce.OpenLedger(t.Context(), dir, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// running is a node with a running container c1, whose cpu.idle and memory.high a plugin has
// set when it was created.
func running(t *testing.T, opts ...option) (n *node, pod, container string) {
	fs, pod, container := scratchGroup(t)
	n = newNode(t, []plugin.Member{
		on(abi.PreCreateContainer, write(abi.Container, "cpu.idle", "1")), on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000")),
	}, append(opts, withCgroups(fs))...)
	n.runPod()
	n.begin()
	if idle, high := content(t, container, "cpu.idle"), content(t, container, "memory.high"); idle != "1" || high != "4096000" {
		t.Fatalf("cpu.idle is %s, memory.high is %s", idle, high)
	}
	return n, pod, container
}

func removed(ids ...string) func(enforce.ID, enforce.Target, enforce.Wish) bool {
	return func(_ enforce.ID, _ enforce.Target, w enforce.Wish) bool {
		for _, id := range ids {
			if w.Plugin == id {
				return true
			}
		}
		return false
	}
}

// withdraw ends the wishes of plugins, and waits for what follows.
func (n *node) withdraw(ids ...string) {
	n.options.Withdraw(n.t.Context(), removed(ids...))
	n.must(n.queue.Drain(n.t.Context()))
}

// A plugin that wants another value than a plugin of an earlier hook gets CONFLICT from the
// setter; one that wants the same, or is the first one itself, does not.
func TestConflictAcrossHooks(t *testing.T) {
	var errs []error
	wants := func(value string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			errs = append(errs, adj.WriteFile(abi.Container, "memory.high", value))
			return nil
		}
	}
	var events observe.Recorder
	n, _, dir := running(t, withObserver(&events))
	for _, value := range []string{"8192000", "4096000"} {
		other := on(abi.PreUpdateContainerResources, wants(value))
		other.ID = "05-other"
		m := n.with(withCgroups(n.options.Cgroups), other)
		m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	}
	if !errors.Is(errs[0], abi.Conflict) || errs[1] != nil {
		t.Errorf("the errors are %v", errs)
	}
	m := n.with(withCgroups(n.options.Cgroups), on(abi.PreUpdateContainerResources, wants("8192000")))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	if got := content(t, dir, "memory.high"); errs[2] != nil || got != "8192000" {
		t.Errorf("the plugin that was first got %v, and memory.high is %s", errs[2], got)
	}
}

// After a restart of the proxy the values hold without a plugin that asks again, and a repair
// and an undo know what is the plugin's and what is kubelet's.
func TestRestartOfTheProxy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, _, group := running(t, withLedger(openLedger(t, dir)))
	put(t, group, "memory.high", "max")
	m := newNode(t, nil, withLedger(openLedger(t, dir)), func(o *intercept.Options) { o.Store, o.Cgroups = n.store, n.options.Cgroups })
	m.store = n.store
	resync(t.Context(), &m.options.Enforcer)
	if idle, high := content(t, group, "cpu.idle"), content(t, group, "memory.high"); idle != "1" || high != "4096000" {
		t.Errorf("after the restart cpu.idle is %s, memory.high is %s", idle, high)
	}
	put(t, group, "memory.high", "max")
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	if high := content(t, group, "memory.high"); high != "4096000" {
		t.Errorf("after an update memory.high is %s", high)
	}
	m.withdraw("10-test")
	if idle, high := content(t, group, "cpu.idle"), content(t, group, "memory.high"); idle != "0" || high != "max" {
		t.Errorf("without the plugin cpu.idle is %s, memory.high is %s", idle, high)
	}
}

// A container that was created before a restart and starts after it gets its values.
func TestRestartBetweenCreateAndStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	fs, _, group := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.idle", "1"))}, withCgroups(fs), withLedger(openLedger(t, dir)))
	n.runPod()
	m := newNode(t, nil, withCgroups(fs), withLedger(openLedger(t, dir)), func(o *intercept.Options) { o.Store = n.store })
	m.begin()
	if got := content(t, group, "cpu.idle"); got != "1" {
		t.Errorf("cpu.idle is %s", got)
	}
}

// The records of objects that the runtime does not have any more are dropped, also by the calls
// that remove them.
func TestRecordsOfRemovedObjects(t *testing.T) {
	n, _, _ := running(t)
	_, err := n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	n.must(err)
	if all := n.options.Ledger.Objects(); len(all) > 0 {
		t.Errorf("%v remain", all)
	}
	n, _, _ = running(t)
	n.options.Store = pods.NewStore()
	resync(t.Context(), &n.options.Enforcer)
	if all := n.options.Ledger.Objects(); len(all) != 1 {
		t.Errorf("a pod that may be in the making was dropped: %v remain", all)
	}
}

// What the runtime overwrites at an update, and at the start of a sibling, is written again at
// once, and told of with its object.
func TestRepairAfterCalls(t *testing.T) {
	var events observe.Recorder
	n, _, dir := running(t, withObserver(&events))
	events.Take()
	n.updating = func() { put(t, dir, "memory.high", "12345") }
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	again := observe.All[*observe.CgroupFileRepaired](events.Take())
	if got := content(t, dir, "memory.high"); got != "4096000" || len(again) != 1 {
		t.Fatalf("memory.high is %s, and the events are %v", got, again)
	}
	if e := again[0]; e.ContainerID != "c1" || e.Container != "app" || e.Pod != "web" || e.Plugin != "10-test" || e.Found != "12345" || e.Value != "4096000" {
		t.Errorf("the event is %+v", e)
	}
	n.updating = nil
	_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	n.updating = func() { put(t, dir, "cpu.idle", "0") }
	_, err = n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if got := content(t, dir, "cpu.idle"); got != "1" {
		t.Errorf("cpu.idle is %s after the start of a sibling", got)
	}
	put(t, dir, "cpu.idle", "0")
	n.updating = func() { put(t, dir, "cpu.idle", "0") }
	_, err = n.call(t.Context(), "UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1"}, &runtimeapi.UpdatePodSandboxResourcesResponse{})
	n.must(err)
	if got := content(t, dir, "cpu.idle"); got != "1" {
		t.Errorf("cpu.idle is %s after an update of the pod", got)
	}
}

// A scan repairs a file five times, and then leaves it alone with one event that names the last
// call.
func TestScanRepairsAndGivesUp(t *testing.T) {
	var events observe.Recorder
	n, _, dir := running(t, withObserver(&events))
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	events.Take()
	for range 8 {
		put(t, dir, "memory.high", "777")
		n.options.Scan(t.Context())
	}
	all := events.Take()
	fights := observe.All[*observe.CgroupFileFought](all)
	if repairs := len(observe.All[*observe.CgroupFileRepaired](all)); repairs != 5 || len(fights) != 1 || content(t, dir, "memory.high") != "777" {
		t.Fatalf("%d repairs, %d fights, memory.high is %s", repairs, len(fights), content(t, dir, "memory.high"))
	}
	if e := fights[0]; e.Last != "UpdateContainerResources" || e.Found != "777" || e.Value != "4096000" || e.ContainerID != "c1" {
		t.Errorf("the event is %+v", e)
	}
	n.withdraw("10-test")
	if got := content(t, dir, "memory.high"); got != "777" {
		t.Errorf("memory.high is %s without the plugin, and kubelet or another wrote 777 last", got)
	}
}

// A value that is there is not written again: neither by a scan, nor when a plugin repeats its
// wish.
func TestNoWriteOfAValueThatIsThere(t *testing.T) {
	n, _, dir := running(t)
	before, err := os.Stat(filepath.Join(dir, "memory.high"))
	n.must(err)
	n.must(os.Chmod(filepath.Join(dir, "memory.high"), 0o444)) // root may still write it
	var events observe.Recorder
	m := n.with(func(o *intercept.Options) { o.Cgroups = n.options.Cgroups; withObserver(&events)(o) }, on(abi.PreUpdateContainerResources, write(abi.Container, "memory.high", "4096000")))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	m.options.Scan(t.Context())
	resync(t.Context(), &m.options.Enforcer)
	after, err := os.Stat(filepath.Join(dir, "memory.high"))
	n.must(err)
	if told := observe.All[*observe.CgroupFileWritten](events.Take()); len(told) > 0 || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("%d writes; modified at %v and then at %v", len(told), before.ModTime(), after.ModTime())
	}
}

// What a plugin did to the pod's cgroup before a call that then fails is undone, and its earlier
// wish is back.
func TestFilesOfACallThatFails(t *testing.T) {
	fs, dir, _ := scratchGroup(t)
	value := "8192000"
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.WriteFile(abi.Pod, "memory.high", value)
	})}, withCgroups(fs))
	run := func(fails error) string {
		n.fails = fails
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
		if !errors.Is(err, fails) {
			t.Fatal(err)
		}
		return content(t, dir, "memory.high")
	}
	no := errors.New("no")
	if got := run(no); got != "max" || len(n.options.Ledger.Objects()) > 0 {
		t.Errorf("memory.high is %s, the ledger has %v", got, n.options.Ledger.Objects())
	}
	if got := run(nil); got != "8192000" {
		t.Errorf("memory.high is %s", got)
	}
	value = "4096000"
	if got := run(no); got != "8192000" {
		t.Errorf("memory.high is %s, and was 8192000 before the call that failed", got)
	}
}

// another is a generation of the plugins of running that differs from the one that has set their values.
func another(o *intercept.Options) { o.Generations = map[string]string{"10-test": "another"} }

// A new generation of a plugin that does not repeat a wish at Synchronize loses it; the same one does not after a restart
// of the proxy.
func TestNewVersionThatIsSilentAtSynchronize(t *testing.T) {
	for _, replaces := range []bool{true, false} {
		n, _, dir := running(t)
		var idle function = func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			o, err := neighbour(ev)
			return errors.Join(err, adj.WriteFile(o, "cpu.idle", "1"))
		}
		if replaces {
			another(&n.options)
		}
		_, err := intercept.NewSynchronized().Sweep(t.Context(), n.options, on(abi.Synchronize, idle), nil)
		n.must(errors.Join(err, n.queue.Drain(t.Context())))
		want := map[bool]string{true: "max", false: "4096000"}[replaces]
		if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "1" || high != want {
			t.Errorf("replaces %v: cpu.idle is %s, memory.high is %s; want 1 and %s", replaces, idle, high, want)
		}
	}
}

// A new version that may not ask for containers in Synchronize keeps their values, unless its
// match excludes the pod. Nothing ends if the time for Synchronize is over before it is called.
func TestNewVersionThatCannotAskAtSynchronize(t *testing.T) {
	elsewhere := plugin.Matches{}.And(abi.HookSetOf(abi.Synchronize), abi.Match{Namespaces: []string{"elsewhere"}})
	for name, c := range map[string]struct {
		granted abi.CapabilitySet
		match   plugin.Matches
		late    bool
		want    string
	}{
		"may not":       {abi.AllCapabilities &^ abi.CapabilitySetOf(abi.UpdateOthers), nil, false, "4096000"},
		"finds nothing": {abi.AllCapabilities &^ abi.CapabilitySetOf(abi.StoreRead), nil, false, "4096000"},
		"another pod":   {abi.AllCapabilities &^ abi.CapabilitySetOf(abi.UpdateOthers), elsewhere, false, "max"},
		"no time":       {abi.AllCapabilities, nil, true, "4096000"},
	} {
		n, _, dir := running(t)
		another(&n.options)
		m := on(abi.Synchronize, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })
		m.Capabilities, m.Match = c.granted, c.match
		ctx := t.Context()
		if c.late {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, time.Now())
			defer cancel()
		}
		if _, err := intercept.NewSynchronized().Sweep(ctx, n.options, m, nil); (err != nil) != c.late {
			t.Errorf("%s: error %v", name, err)
		}
		n.must(n.queue.Drain(t.Context()))
		if got := content(t, dir, "memory.high"); got != c.want {
			t.Errorf("%s: memory.high is %s, want %s", name, got, c.want)
		}
	}
}

// An undo takes the lines of devices away that a plugin has added, and brings back those that it
// changed.
func TestUndoOfAFileWithLines(t *testing.T) {
	const kubelet = "8:0 rbps=1 wbps=max riops=max wiops=max"
	fs, _, dir := scratchGroup(t)
	put(t, dir, "io.max", kubelet)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "io.max", "8:16 rbps=5 wbps=max riops=max wiops=max"))}, withCgroups(fs))
	n.runPod()
	n.begin()
	put(t, dir, "io.max", kubelet+"\n8:16 rbps=5 wbps=max riops=max wiops=max") // as the kernel shows it
	n.withdraw("10-test")
	if got, want := content(t, dir, "io.max"), "8:16 rbps=max wbps=max riops=max wiops=max"; got != want {
		t.Errorf("io.max was written as %q, want %q", got, want)
	}
}

// A weight is not repaired while the group is idle: the kernel shows another one then, which
// nobody has asked for.
func TestWeightOfAnIdleGroupIsNotRepaired(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	put(t, dir, "cpu.weight", "100")
	var events observe.Recorder
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.weight", "50"))}, withCgroups(fs), withObserver(&events))
	n.runPod()
	n.begin()
	put(t, dir, "cpu.idle", "1")
	put(t, dir, "cpu.weight", "0")
	events.Take()
	n.options.Scan(t.Context())
	if told := observe.All[*observe.CgroupFileRepaired](events.Take()); len(told) > 0 || content(t, dir, "cpu.weight") != "0" {
		t.Errorf("cpu.weight is %s, and the events are %v", content(t, dir, "cpu.weight"), told)
	}
	put(t, dir, "cpu.idle", "0")
	put(t, dir, "cpu.weight", "50")
	n.withdraw("10-test")
	if got := content(t, dir, "cpu.weight"); got != "100" {
		t.Errorf("without the plugin cpu.weight is %s, want kubelet's 100", got)
	}
}

// A write that fails long after the hook names the plugin, the hook, the file, the value and the
// object whose file it is.
func TestLateFailureNamesEverything(t *testing.T) {
	var events observe.Recorder
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000"))}, withCgroups(scratch(t, "v2")), withObserver(&events))
	n.runPod()
	n.describe("c1")
	n.begin()
	failed := observe.All[*observe.CgroupFileFailed](events.Take())
	if len(failed) != 1 {
		t.Fatalf("%d events", len(failed))
	}
	got := fmt.Sprint(failed[0].Plugin, failed[0].Hook, failed[0].File, failed[0].Value, failed[0].Pod, failed[0].ContainerID)
	if want := fmt.Sprint("10-test", abi.PreCreateContainer, "memory.high", "4096000", "web", "c1"); got != want || !errors.Is(failed[0].Err, abi.NotFound) {
		t.Errorf("got %s, %v; want %s", got, failed[0].Err, want)
	}
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	n.options.Scan(t.Context())
	if again := observe.All[*observe.CgroupFileFailed](events.Take()); len(again) > 0 {
		t.Errorf("the same failure is reported again: %v", again)
	}
}

// Values that an update suspends come back also if the call panics.
func TestSuspendedValuesComeBackAfterAPanic(t *testing.T) {
	n, _, dir := running(t)
	var during string
	n.updating = func() {
		during = content(t, dir, "cpu.idle")
		panic("the runtime's client has a defect")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7})
	}()
	if after := content(t, dir, "cpu.idle"); during != "0" || after != "1" {
		t.Errorf("cpu.idle is %s during the update and %s after it", during, after)
	}
}

// When a removed plugin's cpu.idle ends, the runtime is asked for the CPU shares again: the
// kernel has given the container its default share.
func TestUndoOfIdleNamesTheShares(t *testing.T) {
	n, _, dir := running(t)
	n.withdraw("10-test")
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "cpu.idle"); got != "0" || len(n.backend.updates) != 1 || n.backend.updates[0].GetLinux().GetCpuShares() != 512 {
		t.Errorf("cpu.idle is %s, and the updates are %v", got, n.backend.updates)
	}
}

// A value that the kernel shows as rounded to pages is neither repaired nor taken for kubelet's.
func TestRoundedValueIsNotRepaired(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	var events observe.Recorder
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "8193"))}, withCgroups(fs), withObserver(&events))
	n.runPod()
	n.begin()
	put(t, dir, "memory.high", "8192") // as the kernel shows it
	events.Take()
	n.options.Scan(t.Context())
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	if told := observe.All[*observe.CgroupFileRepaired](events.Take()); len(told) > 0 {
		t.Errorf("repaired: %v", told)
	}
	n.withdraw("10-test")
	if got := content(t, dir, "memory.high"); got != "max" {
		t.Errorf("memory.high is %s without the plugin, want kubelet's max", got)
	}
}

// Two plugins conflict over the weight, whichever view of it each of them sets.
func TestConflictAcrossHooksOverTheWeight(t *testing.T) {
	for _, views := range [][2]string{{"cpu.weight", "cpu.weight.nice"}, {"cpu.weight.nice", "cpu.weight"}} {
		fs, _, dir := scratchGroup(t)
		put(t, dir, "cpu.weight", "100")
		put(t, dir, "cpu.weight.nice", "0")
		n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, views[0], "5"))}, withCgroups(fs))
		n.runPod()
		n.begin()
		var err error
		other := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			err = adj.WriteFile(abi.Container, views[1], "5")
			return nil
		})
		other.ID = "05-other"
		m := n.with(withCgroups(fs), other)
		m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
		if !errors.Is(err, abi.Conflict) {
			t.Errorf("%v: the error is %v", views, err)
		}
	}
}

// A reload of systemd has the values repaired that systemd has overwritten. A fight that follows
// names it.
func TestRepairAfterAReloadOfSystemd(t *testing.T) {
	var events observe.Recorder
	n, _, dir := running(t, withObserver(&events))
	events.Take()
	for range 7 {
		put(t, dir, "memory.high", "777")
		n.options.Repair(t.Context(), "a reload of systemd")
	}
	if again := observe.All[*observe.CgroupFileRepaired](events.Take()); len(again) != 7 || content(t, dir, "memory.high") != "4096000" {
		t.Errorf("%d repairs after 7 reloads, memory.high is %s", len(again), content(t, dir, "memory.high"))
	}
	for range 6 {
		put(t, dir, "memory.high", "777")
		n.options.Scan(t.Context())
	}
	if fights := observe.All[*observe.CgroupFileFought](events.Take()); len(fights) != 1 || fights[0].Last != "a reload of systemd" {
		t.Errorf("the fights are %+v", fights)
	}
}

// TestScanPart looks at each pod once in three scans, and each time at an object of which something could not be
// written.
func TestScanPart(t *testing.T) {
	n, _, dir := running(t)
	const foreign = "777"
	for round := range uint64(3) {
		put(t, dir, "memory.high", foreign)
		scans := uint64(0)
		for ; content(t, dir, "memory.high") == foreign; scans++ {
			if scans == enforce.ScanParts {
				t.Fatalf("memory.high is %s after %d scans", foreign, scans)
			}
			n.options.ScanPart(t.Context(), round+scans)
		}
		if round == 0 {
			continue
		}
		put(t, dir, "memory.high", foreign)
		_ = refused(syscall.EROFS, func() error { n.options.Scan(t.Context()); return nil })
		if n.options.ScanPart(t.Context(), round+scans); content(t, dir, "memory.high") == foreign {
			t.Error("a value that could not be written is left out")
		}
	}
}
