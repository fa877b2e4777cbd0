package daemon_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// hostile guests serve PreRunPodSandbox well, and do their worst in
// PreCreateContainer. says is part of what the daemon answers then; nothing, if the
// call is served all the same. Words are alternatives, one of which may be none.
var hostile = []struct {
	name, says string
	containers []string // names to be tried, one after the other; "app" if there are none
}{
	{name: "endless", says: "fuel|time limit"},
	{name: "endless-branch-table", says: "fuel|time limit"},
	{name: "endless-calls", says: "fuel|time limit"},
	{name: "fork-recursion", says: "fuel|time limit"},
	{name: "deep-recursion", says: "stack overflow"},
	{name: "wide-recursion", says: "stack overflow"},
	{name: "table-recursion", says: "stack overflow"},
	{name: "grow-by-pages", says: "|time limit"}, // which of the two is a matter of the machine
	{name: "grow-at-once"},
	{name: "grow-without-end", says: "fuel|time limit"},
	{name: "random-loads", says: "fuel|time limit"},
	{name: "random-stores", says: "fuel|time limit"},
	{name: "square-roots", says: "fuel|time limit"},
	{name: "divisions", says: "fuel|time limit"},
	{name: "fill-without-end", says: "fuel|time limit"},
	{name: "copy-without-end", says: "fuel|time limit"},
	{name: "fill-outside", says: "out of bounds memory access|fuel"},
	{name: "change-flood", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "read-flood", says: "called the host more than 1000 times"},
	{name: "log-without-end", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "reject-flood", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "table-out-of-bounds", says: "invalid table access"},
	{name: "table-empty-place", says: "invalid table access"},
	{name: "table-wrong-type", says: "indirect call type mismatch"},
	{name: "state-across-calls"},
	{name: "bad-pointer-everywhere", says: "outside its memory", containers: badPointers()},
}

// badPointers are the names of containers that make bad-pointer-everywhere go
// through all host functions that take one.
func badPointers() (names []string) {
	for f := 'a'; f <= 'r'; f++ {
		names = append(names, string(f)+"p")
		if f != 'b' { // get_i64 takes no length
			names = append(names, string(f)+"l")
		}
	}
	return names
}

// hopeless guests have no good side: what they do in each hook they want, they do
// again in the next call.
var hopeless = []struct{ name, says string }{
	{"loop", "fuel|time limit"},
	{"spin", "fuel|time limit"},
	{"recursion", "stack overflow"},
	{"alloc", "unreachable|time limit"},
	{"trap", "unreachable"},
	{"panic", "unreachable"},
	{"abort", "aborted"},
	{"exit-0", "exit"},
	{"exit-3", "exit"},
	{"nonsense", "returned 7"},
	{"fail", "failed"},
	{"fail-silent", "failed without a reason"},
	{"reject-forgotten", "called reject"},
	{"reject-missing", "returned 1"},
	{"bad-pointer", "outside its memory"},
	{"bad-length", "outside its memory"},
	{"host-call-flood", "called the host more than 1000 times"},
	{"log-flood", ""},
	{"print-flood", ""},
}

// engines are the two ways to run a guest, as a plugin's JSON says them.
var engines = []struct{ name, json string }{
	{"compiler", `{"timeout":"100ms","failure-policy":"Fail"}`},
	{"interpreter", `{"timeout":"100ms","failure-policy":"Fail","engine":"interpreter"}`},
}

// What a hostile guest may cost the node. attempts are for a machine that has more to
// do than this test: what a guest costs it costs each time, what another process
// costs it does not.
const (
	kitBudget   = 100 * time.Millisecond // the timeout above
	maxOverrun  = 100 * time.Millisecond // of the budget, by a call
	maxSlowdown = 50 * time.Millisecond  // of the 99th percentile of other calls
	maxPause    = 100 * time.Millisecond // of runtime.GC
	maxGrowth   = int64(64 << 20)        // bytes of resident memory, while it happens
	maxLeft     = 24 << 20               // once free memory was given back: 16 MiB of an instance that waits, and 8
	attempts    = 5
)

// growers may take more than maxGrowth for the moment: what a memory was before it grew,
// and that of the instance before, is garbage until the next collection. They still
// give it back, and the budget of all guests bounds what is not garbage.
var growers = map[string]int64{"grow-by-pages": 256 << 20, "alloc": 256 << 20}

// TestHostileGuests lets each hostile guest of testdata/wat, with each engine, loose on
// a daemon that other traffic goes through: it ends in time and as documented,
// nothing else notices, and the plugin's next call is served.
func TestHostileGuests(t *testing.T) {
	notUnderRace(t)
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			k := newKit(t, engine.json)
			for _, g := range hostile {
				t.Run(g.name, func(t *testing.T) {
					containers := append(g.containers, "app")[:max(1, len(g.containers))]
					k.try(t, kitBudget, func() { k.load(t, g.name) }, func() time.Duration { return k.serves(t, g.says, containers, true) })
				})
			}
			for _, g := range hopeless {
				t.Run(g.name, func(t *testing.T) {
					k.try(t, kitBudget, func() { k.load(t, g.name) }, func() time.Duration { return k.serves(t, g.says, []string{"app"}, false) })
				})
			}
		})
	}
}

// kit is a node whose plugin 10-bad is one guest after the other, beside 20-good.
type kit struct {
	*node
	json   string
	other  string        // a container that the hostile plugin never hears of
	calm   time.Duration // p99 of other calls without a hostile guest
	serial int
	turn   int // of calmDown
}

func newKit(t *testing.T, json string) *kit {
	n := newNode(t)
	n.put("20-good.wasm", "noop")
	n.start(daemon.Run)
	n.await("plugins in force", "20-good")
	pod, err := n.runPod(t.Context(), "other")
	n.must(err)
	container, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	k := &kit{node: n, json: json, other: container}
	k.rest()
	return k
}

// calmDown makes a good guest the plugin, another one each time because the same would
// not be loaded anew, and waits a while.
func (k *kit) calmDown(t *testing.T) {
	t.Helper()
	k.turn++
	k.load(t, []string{"noop", "quota"}[k.turn%2])
	k.rest()
}

// rest finds out how long other calls take while nobody misbehaves.
func (k *kit) rest() {
	calls := traffic(k.node, k.other)
	time.Sleep(300 * time.Millisecond)
	k.calm = calls()
}

// load makes a guest the plugin, and a new one: its breaker is closed.
func (k *kit) load(t *testing.T, name string) {
	t.Helper()
	k.t = t
	k.put("10-bad.json", k.json)
	k.put("10-bad.wasm", name)
	k.await("plugin loaded", "plugin=10-bad", "name="+name)
	k.await("plugins in force", "10-bad")
}

// cost is what a guest cost the node.
type cost struct {
	longest, p99, pause time.Duration
	growth, left        int64
}

// over lists what is more than it may be for a guest with a budget, where other calls
// take as long as calm without it.
func (c cost) over(guest string, budget, calm time.Duration) []string {
	growth := cmp.Or(growers[guest], maxGrowth)
	var over []string
	note := func(is bool, format string, args ...any) {
		if is {
			over = append(over, fmt.Sprintf(format, args...))
		}
	}
	note(c.longest > budget+maxOverrun, "it took %v, its budget is %v", c.longest, budget)
	note(c.p99 > calm+maxSlowdown, "p99 of other calls grew from %v to %v", calm, c.p99)
	note(c.pause > maxPause, "runtime.GC took %v", c.pause)
	note(c.growth >= growth, "resident memory grew by %.1f MiB", float64(c.growth)/(1<<20))
	note(c.left >= maxLeft, "resident memory stayed larger by %.1f MiB", float64(c.left)/(1<<20))
	return over
}

// try measures what it costs to let a guest act, which may take as long as its budget.
// What must be true of each call is checked in each attempt; the figures have to hold
// in one, before each of which prepare runs. With the race detector they are those of
// the detector, and are not looked at.
func (k *kit) try(t *testing.T, budget time.Duration, prepare func(), act func() time.Duration) {
	t.Helper()
	var over []string
	guest := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	for range attempts {
		prepare()
		c := k.measure(act)
		if over = c.over(guest, budget, k.calm); len(over) == 0 || underRace || t.Failed() {
			t.Logf("longest call %v, p99 of others %v (%v without), GC %v, memory +%.1f MiB, then %+.1f", c.longest, c.p99, k.calm, c.pause,
				float64(c.growth)/(1<<20), float64(c.left)/(1<<20))
			return
		}
		t.Logf("once: %s", strings.Join(over, "; "))
		k.calmDown(t)
	}
	t.Errorf("in each of %d attempts; in the last one %s", attempts, strings.Join(over, "; "))
}

// measure lets a guest act while other calls go on.
func (k *kit) measure(act func() time.Duration) (c cost) {
	before := k.settle()
	calls, collections := traffic(k.node, k.other), collecting()
	c.longest = act()
	c.p99, c.pause = calls(), collections()
	c.growth = k.peak() - before
	c.left = k.settle() - before
	return c
}

// serves calls a guest for each name, or four times for one, so that the breaker of one
// that has no good side stays closed. It returns how long the longest call took.
func (k *kit) serves(t *testing.T, says string, containers []string, good bool) (longest time.Duration) {
	t.Helper()
	for _, name := range containers {
		for range max(1, 4/len(containers)) {
			longest = max(longest, k.misbehave(t, says, name))
			if good {
				k.behave(t)
			}
		}
	}
	return longest
}

// misbehave makes the guest do its worst.
func (k *kit) misbehave(t *testing.T, says, container string) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := k.createContainer(t.Context(), "web", container)
	took := time.Since(start)
	switch {
	case says == "" && err != nil:
		t.Errorf("container %s: %v", container, err)
	case strings.HasPrefix(says, "|") && err == nil:
	case says != "" && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "10-bad") || !containsOne(err.Error(), says)):
		t.Errorf("container %s: %v; want %q", container, err, says)
	}
	return took
}

// behave makes the same plugin serve a call.
func (k *kit) behave(t *testing.T) {
	t.Helper()
	k.serial++
	pod, err := k.runPod(t.Context(), podName(k.serial))
	if err != nil {
		t.Errorf("the next call of the same plugin: %v", err)
		return
	}
	k.runtime.RuntimeService.Lock()
	defer k.runtime.RuntimeService.Unlock()
	if got := k.runtime.RuntimeService.Sandboxes[pod].Annotations["example.com/well"]; got != "yes" {
		t.Errorf("the next call of the same plugin did nothing: annotation %q", got)
	}
}

func containsOne(text, words string) bool {
	return slices.ContainsFunc(strings.Split(words, "|"), func(w string) bool { return w != "" && strings.Contains(text, w) })
}

// traffic makes calls that the hostile plugin does not hook: of those that no plugin
// does, and, if there is a container, as many that 20-good does. What it returns ends
// that and says how long they took.
func traffic(n *node, container string) (p99 func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var took []time.Duration
	var calling sync.WaitGroup
	calling.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			start := time.Now()
			if err := n.unrelated(ctx, container, i); err != nil && ctx.Err() == nil {
				n.t.Errorf("another call: %v", err)
			}
			took = append(took, time.Since(start))
			time.Sleep(100 * time.Microsecond)
		}
	})
	return func() time.Duration {
		time.Sleep(20 * time.Millisecond) // some calls at least
		cancel()
		calling.Wait()
		slices.Sort(took)
		return took[len(took)*99/100]
	}
}

func (n *node) unrelated(ctx context.Context, container string, i int) (err error) {
	if i%2 == 0 || container == "" {
		_, err = n.kubelet.Version(ctx, &runtimeapi.VersionRequest{})
		return err
	}
	_, err = n.kubelet.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuShares: 512},
	})
	return err
}

// collecting collects garbage. What it returns ends that and says how long the
// longest collection took.
func collecting() (longest func() time.Duration) {
	done, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var worst time.Duration
		for {
			start := time.Now()
			runtime.GC()
			worst = max(worst, time.Since(start))
			select {
			case <-done:
				result <- worst
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() time.Duration {
		close(done)
		return <-result
	}
}

// settle gives free memory back, and returns how much is resident. The peak starts
// anew.
func (k *kit) settle() int64 {
	debug.FreeOSMemory()
	k.must(os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return k.resident("VmRSS:")
}

// peak returns how much memory was resident at a time since settle.
func (k *kit) peak() int64 { return k.resident("VmHWM:") }

func (k *kit) resident(key string) int64 {
	k.t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	k.must(err)
	_, rest, _ := strings.Cut(string(b), key)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	k.must(err)
	return kib << 10
}

// notUnderRace leaves a test of hostile guests to a process of its own (make
// hostile): with the race detector and other tests beside it, which of several
// limits ends a guest first, and what others notice, is the machine's doing.
func notUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("limits in time mean nothing under the race detector; make hostile runs this")
	}
}
