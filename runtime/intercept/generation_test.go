package intercept_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// present is the generation of every plugin.
func present(g *intercept.Generation) func(string) *intercept.Generation {
	return func(string) *intercept.Generation { return g }
}

// place is the member of an active generation.
func place(granted abi.CapabilitySet, hooks ...abi.Hook) *plugin.Member {
	m := &plugin.Member{ID: "10-test", Capabilities: granted}
	for _, h := range hooks {
		m.Hooks |= abi.HookSetOf(h)
	}
	return m
}

// The values of a plugin's earlier generation that the present one cannot want end at once, and no others do.
func TestValuesThatAGenerationCannotWantEnd(t *testing.T) {
	const all = abi.AllCapabilities
	without := func(c abi.Capability) abi.CapabilitySet { return all &^ abi.CapabilitySetOf(c) }
	for name, c := range map[string]struct {
		present *intercept.Generation
		ends    bool
	}{
		"the same files":                  {&intercept.Generation{Match: abi.Match{Namespaces: []string{"elsewhere"}}, Member: place(0)}, false},
		"dry-run, with the same files":    {&intercept.Generation{Nothing: true}, true},
		"removed":                         {nil, true},
		"another match":                   {&intercept.Generation{Name: "2", Match: abi.Match{Namespaces: []string{"prod"}, Containers: []string{"app"}}}, false},
		"another namespace":               {&intercept.Generation{Name: "2", Match: abi.Match{Namespaces: []string{"elsewhere"}}}, true},
		"not this namespace":              {&intercept.Generation{Name: "2", Match: abi.Match{Namespaces: []string{"!prod"}}}, true},
		"another container":               {&intercept.Generation{Name: "2", Match: abi.Match{Containers: []string{"other"}}}, true},
		"another label":                   {&intercept.Generation{Name: "2", Match: abi.Match{Labels: map[string]string{"app": "other"}}}, true},
		"not active yet":                  {&intercept.Generation{Name: "2"}, false},
		"active":                          {&intercept.Generation{Name: "2", Member: place(all, abi.PreCreateContainer)}, false},
		"without cgroup.write":            {&intercept.Generation{Name: "2", Member: place(without(abi.CgroupWrite), abi.PreCreateContainer)}, true},
		"without another right":           {&intercept.Generation{Name: "2", Member: place(without(abi.Env), abi.PreCreateContainer)}, false},
		"without the hook":                {&intercept.Generation{Name: "2", Member: place(all, abi.PostStartContainer)}, true},
		"with Synchronize in its place":   {&intercept.Generation{Name: "2", Member: place(all, abi.Synchronize)}, false},
		"which cannot ask for containers": {&intercept.Generation{Name: "2", Member: place(without(abi.UpdateOthers), abi.Synchronize)}, true},
	} {
		n, _, dir := running(t)
		intercept.End(t.Context(), &n.options.Enforcer, present(c.present)).Wait(t.Context())
		want := map[bool]string{true: "0 max", false: "1 4096000"}[c.ends]
		if got := content(t, dir, "cpu.idle") + " " + content(t, dir, "memory.high"); got != want {
			t.Errorf("%s: cpu.idle and memory.high are %s, want %s", name, got, want)
		}
	}
}

// So do those of a generation that has failed its probation, once it is not the present one any more, whatever that hooks.
func TestValuesOfAFailedGenerationEnd(t *testing.T) {
	member := place(abi.AllCapabilities, abi.PreCreateContainer)
	for name, c := range map[string]struct {
		present *intercept.Generation
		want    string
	}{
		"it is still active":                 {&intercept.Generation{Name: "1", Failed: "1", Member: member}, "1"},
		"the one before is active":           {&intercept.Generation{Name: "0", Failed: "1", Member: member}, "0"},
		"the one before is not active":       {&intercept.Generation{Name: "0", Failed: "1"}, "0"},
		"they are of the one that is active": {&intercept.Generation{Name: "1", Failed: "2", Member: member}, "1"},
		"they are of an earlier one":         {&intercept.Generation{Name: "0", Failed: "2", Member: member}, "1"},
	} {
		n, _, dir := running(t, func(o *intercept.Options) { o.Generations = map[string]string{"10-test": "1"} })
		intercept.End(t.Context(), &n.options.Enforcer, present(c.present)).Wait(t.Context())
		if got := content(t, dir, "cpu.idle"); got != c.want {
			t.Errorf("%s: cpu.idle is %s, want %s", name, got, c.want)
		}
	}
}

// So do those that were set in an event of another object, without update.others, and limits that raise a pod's, without
// pod.limits. Resources get kubelet's value by an update.
func TestResourcesThatAGenerationCannotWantEnd(t *testing.T) {
	for name, c := range map[string]struct {
		wish   enforce.Wish
		lacks  abi.Capability
		resets int
	}{
		"its own event":           {enforce.Wish{Hook: abi.PreCreateContainer}, abi.UpdateOthers, 0},
		"another event":           {enforce.Wish{Hook: abi.PostRunPodSandbox}, abi.UpdateOthers, 1},
		"Tick":                    {enforce.Wish{Hook: abi.Tick}, abi.UpdateOthers, 1},
		"a limit":                 {enforce.Wish{Hook: abi.PreCreateContainer}, abi.PodLimits, 0},
		"a limit above the pod's": {enforce.Wish{Hook: abi.PreCreateContainer, Raises: true}, abi.PodLimits, 1},
		"resources":               {enforce.Wish{Hook: abi.PreCreateContainer}, abi.WriteResources, 1},
	} {
		n := newNode(t, nil)
		n.runPod()
		n.begin()
		c.wish.Plugin, c.wish.Value, c.wish.At = "10-test", "70000", time.Now()
		quota, kubelet := enforce.Field("cpu_quota"), "50000"
		n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Updated(enforce.Update{
			Asked: []enforce.Asked{{Target: quota, Wish: c.wish, Has: &kubelet}}, Sent: map[enforce.Target]string{quota: "70000"},
		})
		m := place(abi.AllCapabilities&^abi.CapabilitySetOf(c.lacks), c.wish.Hook)
		intercept.End(t.Context(), &n.options.Enforcer, present(&intercept.Generation{Name: "2", Member: m})).Wait(t.Context())
		n.must(n.queue.Drain(t.Context()))
		if got := n.backend.updates; len(got) != c.resets || c.resets > 0 && got[0].GetLinux().GetCpuQuota() != 50_000 {
			t.Errorf("%s: the runtime got %v, want %d updates with kubelet's quota", name, got, c.resets)
		}
	}
}

// What the runtime could not describe may match: values stay until it has.
func TestValuesStayWhileTheMatchIsNotKnown(t *testing.T) {
	before, _, _ := running(t)
	n := newNode(t, nil, withCgroups(before.options.Cgroups), withLedger(before.options.Ledger))
	narrowed := present(&intercept.Generation{Name: "2", Match: abi.Match{Containers: []string{"other"}}})
	ends := func(want bool, when string) {
		t.Helper()
		intercept.End(t.Context(), &n.options.Enforcer, narrowed).Wait(t.Context())
		if got := n.wish("c1", "cpu.idle") == ""; got != want {
			t.Errorf("%s the wish has ended: %v, want %v", when, got, want)
		}
	}
	ends(false, "before the store has the container")
	n.list("c1")
	n.fill()
	ends(false, "while it is known by a list")
	n.describe("c1")
	n.fill()
	ends(true, "with its status")
}

// told is a plugin that notes each Synchronize with the containers that it finds.
func (l *notes) told(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	if ev.Hook() != abi.Synchronize {
		return l.take(ctx, ev, adj)
	}
	in, _, errno := ev.Containers(abi.Pod, nil)
	if errno != abi.OK {
		return errno
	}
	note := "Synchronize"
	for _, c := range in {
		id, _ := ev.Text(c, abi.ContainerID)
		note += " " + id
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, note)
	return nil
}

func (l *notes) are(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.all, want) {
		t.Errorf("told %q, want %q", l.all, want)
	}
}

// createC2 creates a second container in pod1. The runtime does meanwhile what during does.
func (n *node) createC2(during func()) {
	n.t.Helper()
	n.updating = during
	req := createRequest()
	req.Config.Metadata.Name = "second"
	_, err := n.call(n.t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.updating = nil
	n.must(errors.Join(err, n.queue.Drain(n.t.Context())))
}

// A container whose creation had begun before the plugin was loaded, and that came after the plugin was told of its pod, is
// told to it: by a sweep, or before the container's first event.
func TestContainerThatIsCreatedWhileAPluginIsLoaded(t *testing.T) {
	for _, swept := range []bool{true, false} {
		var told notes
		n, known, m := learning(t, told.told, true)
		n.with(func(*intercept.Options) {}).createC2(func() { n.must(n.sweep(known, m)) })
		if swept {
			n.must(n.sweep(known, m))
			n.must(n.sweep(known, m))
		}
		_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
		n.must(err)
		n.must(n.sweep(known, m))
		told.are(t, "Synchronize c1", "Synchronize c1 c2", "PreStartContainer pod1")
	}
}

// An event of such a container that comes while the plugin is being told of the pod without it waits until it is told with it.
func TestEventWaitsUntilItsContainerIsTold(t *testing.T) {
	var told notes
	entered, leave := make(chan struct{}), make(chan struct{})
	n, known, m := learning(t, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		err := told.told(ctx, ev, adj)
		if len(told.all) == 1 {
			close(entered)
			<-leave
		}
		return err
	}, true, func(o *intercept.Options) { o.CallTime = 30 * time.Second })
	swept := make(chan error, 1)
	go func() { swept <- n.sweep(known, m) }()
	<-entered
	n.with(func(*intercept.Options) {}).createC2(nil)
	started := make(chan error, 1)
	go func() {
		_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
		started <- err
	}()
	time.Sleep(50 * time.Millisecond) // it waits by now
	close(leave)
	n.must(errors.Join(<-swept, <-started))
	told.are(t, "Synchronize c1", "Synchronize c1 c2", "PreStartContainer pod1")
}

// A sweep does not tell of a container that the plugin sees being created, though the store has heard of it already.
func TestNoSweepOfAContainerThatIsBeingCreated(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.told, true)
	n.must(n.sweep(known, m))
	n.createC2(func() {
		status := &runtimeapi.ContainerStatus{Id: "c2", Metadata: &runtimeapi.ContainerMetadata{Name: "second", Attempt: 2}}
		n.backend.containers = map[string]*runtimeapi.ContainerStatusResponse{"c2": {Status: status, Info: map[string]string{"info": `{"sandboxID":"pod1"}`}}}
		if c, err := n.store.ReadContainer(t.Context(), &n.backend, "c2"); err != nil || c.PodID != "pod1" || c.ByListAlone() {
			t.Errorf("the store has %+v, %v", c, err)
		}
		n.must(n.sweep(known, m))
	})
	n.must(n.sweep(known, m))
	told.are(t, "Synchronize c1")
}

// A wish of an earlier generation ends also if the clock was set back since it was noted.
func TestEarlierGenerationEndsWhateverTheClockSays(t *testing.T) {
	n, _, dir := running(t, func(o *intercept.Options) { o.Generations = map[string]string{"10-test": "1"} })
	id := enforce.ID{Pod: "u1", Container: "c1"}
	later := enforce.Wish{Plugin: "10-test", Generation: "1", Hook: abi.PostStartContainer, Value: "1", At: time.Now().Add(time.Hour)}
	n.options.Ledger.Record(id).Ask(enforce.Asked{Target: enforce.File("cpu.idle"), Wish: later})
	another(&n.options)
	n.must(n.sweep(intercept.NewSynchronized(), on(abi.Synchronize, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })))
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "cpu.idle"); got != "0" {
		t.Errorf("cpu.idle is %s after a generation that does not want it", got)
	}
}

// A call of the earlier generation that notes its wish after the present one was told of the pod leaves none: the present one
// is told again, and what it asks for holds.
func TestWishThatAnEarlierGenerationNotesLate(t *testing.T) {
	for _, wants := range []bool{true, false} {
		fs, _, dir := scratchGroup(t)
		old := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, write(abi.Container, "memory.high", "4096000"))}, withCgroups(fs))
		old.runPod()
		old.begin()
		n := old.with(func(o *intercept.Options) { o.Cgroups = fs; another(o) })
		known, tells := intercept.NewSynchronized(), 0
		m := on(abi.Synchronize, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			if tells++; !wants {
				return nil
			}
			o, err := neighbour(ev)
			return errors.Join(err, adj.WriteFile(o, "memory.high", "8192000"))
		})
		old.updating = func() {
			n.must(errors.Join(n.sweep(known, m), n.queue.Drain(t.Context())))
		}
		n.must(old.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
		n.must(old.queue.Drain(t.Context()))
		if got := content(t, dir, "memory.high"); got != "4096000" {
			t.Fatalf("memory.high is %s: the earlier generation has noted no wish", got)
		}
		for range 3 {
			n.must(errors.Join(n.sweep(known, m), n.queue.Drain(t.Context())))
		}
		want := map[bool]string{true: "8192000", false: "max"}[wants]
		if got := content(t, dir, "memory.high"); got != want || tells != 2 {
			t.Errorf("wants %v: memory.high is %s, want %s; Synchronize was called %d times", wants, got, want, tells)
		}
	}
}

// What a generation asks for again in Synchronize stays while the update that brings it waits, and no sweep meanwhile calls
// Synchronize again.
func TestRepeatedWishStays(t *testing.T) {
	n, _, dir := running(t)
	another(&n.options)
	known, tells := intercept.NewSynchronized(), 0
	m := on(abi.Synchronize, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		tells++
		o, err := neighbour(ev)
		return errors.Join(err, adj.WriteFile(o, "cpu.idle", "1"))
	})
	hold, err := n.queue.Acquire(t.Context(), "c1") // nothing of c1 is carried out
	n.must(errors.Join(err, n.sweep(known, m), n.sweep(known, m)))
	hold()
	n.options.Scan(t.Context())
	if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "1" || high != "max" || tells != 1 {
		t.Errorf("cpu.idle is %s, memory.high is %s, and Synchronize was called %d times", idle, high, tells)
	}
}

// Resources of CRI that a generation does not repeat in Synchronize end as files do, with an update; those that it repeats stay,
// and it is told once.
func TestResourcesThatAGenerationDoesNotRepeatEnd(t *testing.T) {
	for _, repeats := range []bool{true, false} {
		n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 70_000)
		})})
		n.runPod()
		n.begin()
		another(&n.options)
		known, tells := intercept.NewSynchronized(), 0
		m := on(abi.Synchronize, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			tells++
			o, err := neighbour(ev)
			if repeats {
				err = errors.Join(err, adj.SetInt64(o, abi.Resources+abi.CPUQuota, 70_000))
			}
			return err
		})
		n.must(errors.Join(n.sweep(known, m), n.sweep(known, m), n.queue.Drain(t.Context())))
		if want := map[bool]int{true: 0, false: 1}[repeats]; tells != 1 || len(n.backend.updates) != want {
			t.Errorf("repeats %v: told %d times, updates %v, want %d", repeats, tells, n.backend.updates, want)
		}
		if repeats {
			n.hasField("cpu_quota", "10-test", "70000", "50000", "70000")
		} else if got := n.backend.updates[0].GetLinux().GetCpuQuota(); got != 50_000 {
			t.Errorf("the runtime got the quota %d", got)
		}
	}
}

// A generation's plugins are kept until what its calls have queued is done: whoever waits for the end of its calls then finds
// all of its wishes.
func TestQueuedWorkKeepsThePlugins(t *testing.T) {
	var held atomic.Int32
	after := on(abi.PostUpdateContainerResources, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 60_000)
	}), after}, func(o *intercept.Options) {
		o.Keep = func() func() { held.Add(1); return func() { held.Add(-1) } }
	})
	n.runPod()
	n.begin()
	noted := make(chan struct{})
	n.late = true
	n.updating = func() {
		if !n.queue.Go("c1", func() { <-noted }) { // what follows the answer waits for that
			t.Error("the queue has no room")
		}
	}
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 30_000}))
	if n := held.Load(); n != 1 {
		t.Errorf("%d things keep the plugins while a post hook is yet to run", n)
	}
	close(noted)
	n.must(n.queue.Drain(t.Context()))
	n.hasField("cpu_quota", "10-test", "60000", "30000", "60000")
	if n := held.Load(); n != 0 {
		t.Errorf("%d things keep the plugins afterwards", n)
	}
}

// While the generation that is to take the place of the present one is told of pods, its wishes stay, whatever the present one
// may want.
func TestWishesOfTheNextGenerationStay(t *testing.T) {
	n, _, dir := running(t, func(o *intercept.Options) { o.Generations = map[string]string{"10-test": "next"} })
	for _, g := range []*intercept.Generation{
		{Name: "present", Next: "next", Nothing: true}, {Name: "present", Next: "next", Match: abi.Match{Namespaces: []string{"elsewhere"}}},
	} {
		intercept.End(t.Context(), &n.options.Enforcer, present(g)).Wait(t.Context())
	}
	silent := on(abi.Synchronize, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })
	n.options.Generations["10-test"] = "present"
	known := intercept.NewSynchronized()
	known.Expect("next")
	n.must(n.sweep(known, silent))
	if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "1" || high != "4096000" {
		t.Errorf("cpu.idle is %s, memory.high is %s", idle, high)
	}
	known.Expect("") // the next one is not to come any more
	n.must(errors.Join(n.sweep(known, silent), n.queue.Drain(t.Context())))
	if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "0" || high != "max" {
		t.Errorf("without a next generation cpu.idle is %s, memory.high is %s", idle, high)
	}
}
