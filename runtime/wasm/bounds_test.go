package wasm

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// slowReads is an event with so many entries in each map, which take long to find.
type slowReads struct {
	*testEvent
	entries, reads int
	takes          time.Duration
}

func (e *slowReads) Entries(abi.Object, abi.Field) (iter.Seq2[string, string], abi.Errno) {
	e.reads++
	time.Sleep(e.takes)
	return func(yield func(string, string) bool) {
		for i := range e.entries {
			if !yield(strconv.Itoa(i), "") {
				return
			}
		}
	}, abi.OK
}

// TestTimeRunsFromEntry lets the host itself take all of a guest's time, in the first host
// function that it calls: the next look at the clock is after that one, and the error says how
// long the guest has run, from its beginning.
func TestTimeRunsFromEntry(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "repeat", PluginOptions{Timeout: 500 * time.Millisecond, Config: []byte("d map_dump")})
		ev := &slowReads{newEvent(), 200, 0, 600 * time.Millisecond}
		_, err := callPlugin(t.Context(), p, ev)
		wantError(t, err, "ran longer than its time limit of 500ms: ")
		said := regexp.MustCompile(`500ms: (\d+m?s|[\d.]+s) and \d+ units of fuel; raise timeout$`).FindStringSubmatch(err.Error())
		if said == nil {
			t.Fatal(err)
		}
		if ran, _ := time.ParseDuration(said[1]); ran < 600*time.Millisecond {
			t.Errorf("it is said to have run for %v, and the host took 600ms: %v", ran, err)
		}
		if ev.reads != 1 {
			t.Errorf("it called the host %d times", ev.reads)
		}
	})
}

// TestTimeOfAllPluginsRunsFromEntry is the same for the time that all plugins of a call have.
func TestTimeOfAllPluginsRunsFromEntry(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "repeat", PluginOptions{Config: []byte("d map_dump")})
	ev := &slowReads{newEvent(), 200, 0, 600 * time.Millisecond}
	within(t, 500*time.Millisecond, func(ctx context.Context, budget *plugin.Budget, _ plugin.Event, adj *plugin.Adjustment) error {
		err := p.Call(ctx, budget, ev, adj)
		wantError(t, err, "the time of all plugins of a call, 500ms, is used up; it ran ")
		if strings.Contains(err.Error(), "it ran 0s") || ev.reads != 1 {
			t.Errorf("after %d reads: %v", ev.reads, err)
		}
		return nil
	})
}

// TestWorkOfTheHostIsCharged shows that what the host goes through counts, not only what it
// hands over: 900 dumps of 100 entries each.
func TestWorkOfTheHostIsCharged(t *testing.T) {
	e := newEngine(t, Options{})
	const least = 900 * (hostCallFuel + 100*elementFuel)
	for fuel, want := range map[int64]string{least: "units of fuel, its limit is", 2 * least: ""} {
		p := load(t, e, "repeat", PluginOptions{Set: abi.Limits{Fuel: fuel}, Config: []byte("d map_dump")})
		_, err := callPlugin(t.Context(), p, &slowReads{testEvent: newEvent(), entries: 100})
		if want != "" {
			wantError(t, err, want)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestDeniedIsNotRead shows that the host does no work for a guest that may not see the
// result.
func TestDeniedIsNotRead(t *testing.T) {
	ev := &slowReads{testEvent: newEvent()}
	c := newCaller(t, ev, PluginOptions{Granted: abi.DefaultGrant()})
	c.wantErrno(abi.Denied, "map_dump", abi.Container, abi.ContainerEnv, buffer, 8)
	if ev.reads > 0 {
		t.Error("the environment was read")
	}
	c.wantErrno(abi.OK+4, "map_dump", abi.Pod, abi.PodLabels, buffer, 8)
	if ev.reads == 0 {
		t.Error("labels were not read")
	}
}

// TestTickLimits shows that Tick has limits of its own, and that the error says which key raises them.
func TestTickLimits(t *testing.T) {
	e := newEngine(t, Options{})
	for _, tt := range []struct {
		hook    abi.Hook
		options PluginOptions
		want    string
	}{
		{abi.PreCreateContainer, PluginOptions{Set: abi.Limits{Fuel: 50_000, TickFuel: 90_000}}, "limit is 50000:.*raise limits.fuel$"},
		{abi.Tick, PluginOptions{Set: abi.Limits{Fuel: 50_000, TickFuel: 90_000}}, "limit is 90000:.*raise limits.tick-fuel$"},
		{abi.Tick, PluginOptions{Set: abi.Limits{Fuel: 50_000}}, "limit is 50000:.*raise limits.tick-fuel$"},
		{abi.Tick, PluginOptions{Set: abi.Limits{Fuel: plugin.MaxFuel}, Timeout: 10 * time.Millisecond}, "time limit of 10ms.*raise tick-timeout$"},
		{abi.Tick, PluginOptions{Set: abi.Limits{TickFuel: plugin.MaxFuel}, Timeout: 10 * time.Millisecond, TickTimeout: 20 * time.Millisecond}, "time limit of 20ms.*raise tick-timeout$"},
	} {
		ev := newEvent()
		ev.hook = tt.hook
		_, err := callPlugin(t.Context(), load(t, e, "endless", tt.options), ev)
		if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("%v with %+v: %v, want %s", tt.hook, tt.options, err, tt.want)
		}
	}
}

// TestHostCalls shows how often a guest may call the host, and that the error says which key
// raises that: Tick and Synchronize go through all of a node's containers.
func TestHostCalls(t *testing.T) {
	e := newEngine(t, Options{})
	for _, tt := range []struct {
		hook abi.Hook
		most int // set by the operator
		want string
	}{
		{abi.PreCreateContainer, 0, "called the host more than 1000 times: raise limits.host-calls"},
		{abi.Tick, 0, "called the host more than 20000 times: raise limits.tick-host-calls"},
		{abi.Synchronize, 0, "called the host more than 20000 times: raise limits.tick-host-calls"},
		{abi.PreCreateContainer, 1500, "called the host more than 1500 times: raise limits.host-calls"},
		{abi.Tick, 1500, "called the host more than 1500 times: raise limits.tick-host-calls"},
	} {
		ev := newEvent()
		ev.hook = tt.hook
		_, err := callPlugin(t.Context(), load(t, e, "host-call-flood", PluginOptions{Set: abi.Limits{HostCalls: int64(tt.most)}}), ev)
		wantError(t, err, tt.want)
	}
}

// TestStackOfTheLanguage explains a trap that says nothing of a stack: compilers keep one of
// their own in memory, whose end nobody checks.
func TestStackOfTheLanguage(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		_, err := callPlugin(t.Context(), load(t, e, "shadow-stack", PluginOptions{}), newEvent())
		wantError(t, err, "out of bounds memory access in deeper; its first global, where Rust, C and TinyGo keep the stack pointer, points outside its memory: it seems to have used up its stack")
		_, err = callPlugin(t.Context(), load(t, e, "fill-outside", PluginOptions{}), newEvent())
		wantError(t, err, "out of bounds memory access")
		if strings.Contains(err.Error(), "stack") {
			t.Errorf("a guest without a recursion: %v", err)
		}
	})
}

// TestWrappedContext shows that host functions find their call if wazero hands on a context
// of its own, as it does with a snapshotter.
func TestWrappedContext(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "quota", PluginOptions{}).(*guests)
		g, err := p.pool.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer p.pool.Put(g)
		adj := plugin.NewAdjustment(abi.PreCreateContainer, 2)
		c := g.newCall(t.Context(), abi.ExportHook, nil, newEvent(), adj)
		c.meter.begin()
		stack := []uint64{uint64(abi.PreCreateContainer)}
		if err := g.hook.CallWithStack(experimental.WithSnapshotter(g.during(t.Context(), c)), stack); err != nil || stack[0] != 0 || len(adj.Changes()) != 2 {
			t.Errorf("returned %d with %v changes: %v", stack[0], adj.Changes(), err)
		}
	})
}

// TestImagesEndWithTheirInstances shows that a guest which begins differently each time keeps
// no more first states than it has instances.
func TestImagesEndWithTheirInstances(t *testing.T) {
	e := newEngine(t, Options{})
	p := load(t, e, "noop", PluginOptions{Instances: 1}).(*guests)
	before, kept := e.memory.used.Load(), len(p.images)
	for i := range 10 {
		g, err := p.instantiate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g.instance.Memory().WriteUint32Le(30_000, uint32(i+1)) // what it has read of its kept values, say
		if err := p.remember(g); err != nil {
			t.Fatal(err)
		}
		if len(p.images) != kept+1 {
			t.Fatalf("%d images, want %d", len(p.images), kept+1)
		}
		g.close()
	}
	if after := e.memory.used.Load(); after != before || len(p.images) != kept {
		t.Errorf("%d images of %d bytes are left", len(p.images)-kept, after-before)
	}
}

// TestSlowPluginsLeaveOne shows that plugins whose calls take long run together on all processors but one,
// however many of them there are, and that one whose calls do not is served meanwhile.
func TestSlowPluginsLeaveOne(t *testing.T) {
	e := newEngine(t, Options{Running: 2})
	quick := load(t, e, "quota", PluginOptions{})
	slow := []plugin.Plugin{load(t, e, "fickle", PluginOptions{Timeout: 20 * time.Millisecond}), load(t, e, "fickle", PluginOptions{Timeout: 20 * time.Millisecond})}
	for _, p := range slow {
		p.(*guests).slowFor = time.Hour // on a machine that stalls, calls may end seconds after one another
		if _, err := callPlugin(t.Context(), p, asking("loop")); err == nil || !p.(*guests).isSlow() {
			t.Fatalf("slow %v: %v", p.(*guests).isSlow(), err)
		}
	}
	if quick.(*guests).isSlow() {
		t.Error("a quick plugin counts as slow")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for i := range 6 {
		go func() {
			for ctx.Err() == nil {
				callPlugin(ctx, slow[i%len(slow)], asking("loop"))
			}
			ended <- struct{}{}
		}()
	}
	for range 50 {
		wantQuota(t, quick)
		if !e.running.TryAcquire(1) { // quick has ended, so that it is not the one that has it
			t.Fatal("slow plugins are all that may run")
		}
		e.running.Release(1)
	}
	cancel()
	for range 6 {
		<-ended
	}
	slow[0].(*guests).slowFor = time.Millisecond
	time.Sleep(time.Millisecond)
	if slow[0].(*guests).isSlow() {
		t.Error("a plugin that has done nothing for a while counts as slow")
	}
}

// TestMemoryLimitSaysItsKey shows that the key is the one that helps.
func TestMemoryLimitSaysItsKey(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "alloc", PluginOptions{}).(*guests)
	for asked, want := range map[int64]string{
		0: "its limit is 32 MiB: raise limits.memory", 32 << 20: "its limit is 32 MiB: raise limits.memory in its manifest",
	} {
		p.manifest.Limits.Memory = asked
		_, err := callPlugin(t.Context(), p, newEvent())
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, fmt.Sprintf("%q at its end", want))
		}
	}
}

// TestFloodsCostNoMemory shows that what a guest asks for, and is refused, is not copied: the garbage of one hook
// would come to 64 MiB and more, and several are under way at a time.
func TestFloodsCostNoMemory(t *testing.T) {
	e := newEngine(t, Options{})
	for _, guest := range []string{"change-flood", "list-of-empties", "largest-arguments"} {
		p := load(t, e, guest, PluginOptions{})
		bytes := allocated(func() {
			_, err := callPlugin(t.Context(), p, newEvent())
			wantError(t, err, "called the host more than 1000 times")
		})
		t.Logf("%s: %d KiB", guest, bytes>>10)
		if bytes > 8<<20 {
			t.Errorf("%s allocated %d MiB", guest, bytes>>20)
		}
	}
}
