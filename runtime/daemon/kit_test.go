package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// hostile guests serve PreRunPodSandbox well, and do their worst in
// PreCreateContainer. says is part of what the daemon answers then; nothing, if the
// call is served all the same. Words are alternatives.
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
	{name: "shadow-stack", says: "out of bounds memory access"},
	{name: "grow-by-pages"},
	{name: "grow-at-once"},
	{name: "grow-without-end", says: "fuel|time limit"},
	{name: "pointer-chase", says: "fuel|time limit"},
	{name: "random-loads", says: "fuel|time limit"},
	{name: "random-stores", says: "fuel|time limit"},
	{name: "square-roots", says: "fuel|time limit"},
	{name: "divisions", says: "fuel|time limit"},
	{name: "fill-without-end", says: "fuel|time limit"},
	{name: "copy-without-end", says: "fuel|time limit"},
	{name: "fill-outside", says: "out of bounds memory access"},
	{name: "list-of-empties", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "largest-arguments", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "dump-flood", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "change-flood", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "read-flood", says: "called the host more than 1000 times"},
	{name: "log-without-end", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "reject-flood", says: "called the host more than 1000 times|fuel|time limit"},
	{name: "table-out-of-bounds", says: "invalid table access"},
	{name: "table-empty-place", says: "invalid table access"},
	{name: "table-wrong-type", says: "indirect call type mismatch"},
	{name: "state-across-calls"},
	{name: "bad-pointer-everywhere", says: "outside its memory", containers: badPointers('r', 'b')}, // get_i64 takes no length
	{name: "bad-pointer-elsewhere", says: "outside its memory", containers: badPointers('p', 0)},
	{name: "bad-pointer-wasi", says: "outside its memory", containers: badPointers('n', 0)},
}

// badPointers are the names of containers that make a guest go through all host functions
// that take a pointer, from "a" to last, of which one takes no length.
func badPointers(last, noLength rune) (names []string) {
	for f := 'a'; f <= last; f++ {
		names = append(names, string(f)+"p")
		if f != noLength {
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
	{"alloc", "unreachable"},
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

// kitGrant lets the guests reach all host functions.
const kitGrant = `"grant":["cri.raw","cgroup.read","state.kv","args"]`

// engines are the two ways to run a guest, as a plugin's JSON says them.
var engines = []struct{ name, json string }{
	{"compiler", fmt.Sprintf(`{"timeout":%q,"failure-policy":"Fail",%s}`, kitBudget(), kitGrant)},
	{"interpreter", fmt.Sprintf(`{"timeout":%q,"failure-policy":"Fail","engine":"interpreter",%s}`, kitBudget(), kitGrant)},
}

// TestHostileGuests lets each hostile guest of testdata/wat, with each engine, loose on
// a daemon that other traffic goes through: it ends in time and as documented,
// nothing else notices, and the plugin's next call is served.
func TestHostileGuests(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			k := newKit(t, engine.json)
			for _, g := range hostile {
				t.Run(g.name, func(t *testing.T) {
					containers := append(g.containers, "app")[:max(1, len(g.containers))]
					k.try(t, kitBudget(), func() { k.load(t, g.name) }, func() time.Duration { return k.serves(t, g.says, containers, true) })
				})
			}
			for _, g := range hopeless {
				t.Run(g.name, func(t *testing.T) {
					k.try(t, kitBudget(), func() { k.load(t, g.name) }, func() time.Duration { return k.serves(t, g.says, []string{"app"}, false) })
				})
			}
		})
	}
}

// kit is a node whose plugin 10-bad is one guest after the other, beside 20-good.
type kit struct {
	*node
	json    string
	other   string // a container that the hostile plugin never hears of
	serial  int
	turn    int  // of good
	starved bool // in an act, the clock ended what it should not have met
}

func newKit(t *testing.T, json string) *kit {
	n := newNode(t)
	n.put("20-good.wasm", "noop")
	n.start(daemon.Run)
	n.await("plugins active", "20-good")
	pod, err := n.runPod(t.Context(), "other")
	n.must(err)
	container, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	return &kit{node: n, json: json, other: container}
}

// good makes a good guest the plugin, another one each time because the same would
// not be loaded anew.
func (k *kit) good(t *testing.T) {
	t.Helper()
	k.turn++
	k.load(t, []string{"noop", "quota"}[k.turn%2])
}

// load makes a guest the plugin, and a new one: its breaker is closed.
func (k *kit) load(t *testing.T, name string) {
	t.Helper()
	k.t = t
	k.put("10-bad.json", k.json)
	k.put("10-bad.wasm", name)
	k.await("plugin=10-bad", "name="+name) // it is loaded, or replaces another
	k.await("plugins active", "10-bad")
}

// serves calls a guest for each name, or four times for one, so that the breaker of one
// that has no good side stays closed. It returns how long the longest call took.
func (k *kit) serves(t *testing.T, says string, containers []string, good bool) (longest time.Duration) {
	t.Helper()
	times := max(1, 4/len(containers))
	if underRace {
		times = 1
	}
	for _, name := range containers {
		for range times {
			longest = max(longest, k.misbehave(t, says, name))
			if good {
				k.behave(t)
			}
		}
	}
	return longest
}

// endsByClock is what the daemon says when some time was up. On a node without processor
// time any call may end so.
const endsByClock = "time limit|is used up"

// misbehave makes the guest do its worst.
func (k *kit) misbehave(t *testing.T, says, container string) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := k.createContainer(t.Context(), "web", container)
	took := time.Since(start)
	switch {
	case err != nil && containsOne(err.Error(), endsByClock) && !containsOne(says, endsByClock):
		k.starved = true
		t.Logf("container %s: %v", container, err)
	case says == "" && err != nil:
		t.Errorf("container %s: %v", container, err)
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
