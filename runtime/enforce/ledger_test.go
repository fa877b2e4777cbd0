package enforce_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

var c1 = enforce.ID{Pod: "u1", Container: "c1"}

func wish(plugin, file, value string) enforce.Asked {
	return enforce.Asked{Target: enforce.File(file), Wish: enforce.Wish{Plugin: plugin, Hook: abi.Tick, Value: value, At: time.Unix(1, 0)}}
}

// plain is a kernel that shows what was written; fit, if not nil, is its Fit.
type plain struct{ fit func() string }

func (plain) FitUndo(_, kubelet string) string { return kubelet }
func (plain) Exact(string, string) string      { return "" }

func (k plain) Fit(_, value string) string {
	if k.fit != nil {
		return k.fit()
	}
	return value
}

func (plain) Holds(_, value, held string) bool { return value == held }

// written carries out what is due, on a kernel that takes everything.
func written(l *enforce.Ledger, id enforce.ID, held enforce.Held, why enforce.Why) []enforce.Write {
	due := l.Record(id).Begin(held, why, plain{})
	done := make([]enforce.Done, len(due))
	for i, w := range due {
		done[i] = enforce.Done{Write: w, Read: w.Value}
		if w.Kind != enforce.Fight {
			held[w.File] = w.Value
		}
	}
	l.Record(id).End(done)
	return due
}

func TestFirstOwnerKeepsTheTarget(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("20-b", "cpu.idle", "1"))
	l.Record(c1).Ask(wish("10-a", "cpu.idle", "0"))
	if w, ok := l.Record(c1).Owner(enforce.File("cpu.idle")); !ok || w.Plugin != "20-b" || w.Value != "1" {
		t.Errorf("the owner is %+v", w)
	}
	l.Withdraw(func(_ enforce.ID, _ enforce.Target, w enforce.Wish) bool { return w.Plugin == "20-b" })
	if w, ok := l.Record(c1).Owner(enforce.File("cpu.idle")); !ok || w.Plugin != "10-a" {
		t.Errorf("without it the owner is %+v", w)
	}
}

func TestValueThatIsThereIsNotWritten(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "cpu.idle", "1"))
	if due := written(l, c1, enforce.Held{"cpu.idle": "1"}, enforce.Called); len(due) > 0 {
		t.Errorf("%+v is due", due)
	}
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if files := l.Record(c1).Files(); len(files) > 0 {
		t.Errorf("%v is to be undone, and nobody wrote it", files)
	}
}

// kubelet may write just what a plugin has set before. The plugin's last value holds, and the undo brings
// kubelet's back.
func TestKubeletsWriteOfAnEarlierValue(t *testing.T) {
	l := enforce.NewLedger()
	held := enforce.Held{"memory.high": "max"}
	for _, value := range []string{"78", "60"} {
		l.Record(c1).Ask(wish("10-a", "memory.high", value))
		written(l, c1, held, enforce.Called)
	}
	held["memory.high"] = "78"
	if due := written(l, c1, held, enforce.Called); len(due) != 1 || due[0].Kind != enforce.Repair || held["memory.high"] != "60" {
		t.Fatalf("%+v was due, and the kernel has %s", due, held["memory.high"])
	}
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if written(l, c1, held, enforce.Scan); held["memory.high"] != "78" {
		t.Errorf("the undo wrote %s, kubelet's is 78", held["memory.high"])
	}
}

// A file that kubelet has written since is not undone, and of it nothing is left to know.
func TestNoRecordIsLeftOfAValueThatKubeletReplaced(t *testing.T) {
	l, held := enforce.NewLedger(), enforce.Held{"memory.high": "max"}
	l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
	written(l, c1, held, enforce.Called)
	held["memory.high"] = "7"
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if due := written(l, c1, held, enforce.Called); len(due) > 0 || l.Record(c1).Has() {
		t.Errorf("%+v is due, and the record is %+v", due, l.Record(c1).Values())
	}
}

// A write that failed is tried again by each scan, since the reason may be gone. It is said once, and
// no call tries it again before the plugin asks again or something else has changed the file.
func TestFailedWriteIsTriedAgainByTheScan(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "cpu.max.burst", "1"))
	try := func(held string, why enforce.Why, err string) (outcome string) {
		for _, w := range l.Record(c1).Begin(enforce.Held{"cpu.max.burst": held}, why, plain{}) {
			done := []enforce.Done{{Write: w, Err: errors.New(err)}}
			l.Record(c1).End(done)
			outcome = fmt.Sprintf("tried, again %v", done[0].Again)
		}
		return outcome
	}
	for i, step := range []struct {
		held string
		why  enforce.Why
		err  string
		want string
	}{
		{"0", enforce.Called, "busy", "tried, again false"},
		{"0", enforce.Called, "busy", ""},
		{"0", enforce.Scan, "busy", "tried, again true"},
		{"0", enforce.Scan, "invalid", "tried, again false"},
		{"5", enforce.Scan, "invalid", "tried, again false"},
		{"5", enforce.Scan, "invalid", "tried, again true"},
	} {
		if got := try(step.held, step.why, step.err); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	l.Record(c1).Ask(wish("10-a", "cpu.max.burst", "1"))
	if got := try("5", enforce.Called, "invalid"); got != "tried, again false" {
		t.Errorf("when the plugin asked again: %q", got)
	}
	if v := l.Record(c1).Values()[enforce.File("cpu.max.burst")]; v.Failed == nil || v.Failed.Reason != "invalid" || *v.Kubelet != "5" {
		t.Errorf("the record is %+v", v)
	}
}

// A scan tries a failed undo again, also of a pod without a sandbox.
func TestFailedUndoOfAVacantPodIsTriedAgain(t *testing.T) {
	l, pod := enforce.NewLedger(), enforce.ID{Pod: "u"}
	l.Record(pod).Ask(wish("10-a", "memory.high", "5"))
	written(l, pod, enforce.Held{"memory.high": "max"}, enforce.Called)
	l.Record(pod).Vacate(func(enforce.ID) bool { return false }, func(string) bool { return true })
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	for n := range 3 {
		due := l.Record(pod).Begin(enforce.Held{"memory.high": "5"}, enforce.Vacant, plain{})
		if len(due) != 1 || due[0].Kind != enforce.Undo {
			t.Fatalf("at scan %d %+v is due, want an undo", n, due)
		}
		l.Record(pod).End([]enforce.Done{{Write: due[0], Err: errors.New("read-only")}})
	}
}

// The first write is overwritten and the proxy restarted, before anything else of the object is saved: that is a repair.
func TestRepairAfterRestartCounts(t *testing.T) {
	dir := t.TempDir()
	open := func() *enforce.Ledger {
		l, err := enforce.OpenLedger(t.Context(), dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
	written(l, c1, enforce.Held{"memory.high": "max"}, enforce.Called)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	defer l.Close()
	due := written(l, c1, enforce.Held{"memory.high": "7"}, enforce.Scan)
	if v := l.Record(c1).Values()[enforce.File("memory.high")]; len(due) != 1 || due[0].Kind != enforce.Repair || v.Drift.Repairs != 1 {
		t.Errorf("%+v was due, and the record is %+v", due, v)
	}
}

// A repair that fails is one repair, however often the scan tries it, and no fight.
func TestFailedRepairIsNoFight(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
	written(l, c1, enforce.Held{"memory.high": "max"}, enforce.Called)
	for range 8 {
		due := l.Record(c1).Begin(enforce.Held{"memory.high": "7"}, enforce.Scan, plain{})
		if len(due) != 1 || due[0].Kind != enforce.Repair {
			t.Fatalf("%+v is due", due)
		}
		l.Record(c1).End([]enforce.Done{{Write: due[0], Err: errors.New("read-only")}})
	}
	if v := l.Record(c1).Values()[enforce.File("memory.high")]; v.Drift.Repairs != 1 || v.Drift.Fight {
		t.Errorf("the record is %+v", v)
	}
	held := enforce.Held{"memory.high": "7"}
	if due := written(l, c1, held, enforce.Scan); len(due) != 1 || held["memory.high"] != "1" {
		t.Errorf("%+v was due, and the kernel has %s", due, held["memory.high"])
	}
}

func TestFightEndsAfterFiveRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := enforce.NewLedger()
		l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
		written(l, c1, enforce.Held{"memory.high": "max"}, enforce.Called)
		l.Record(c1).Note("UpdateContainerResources")
		var kinds []enforce.Kind
		var cause string
		for range 8 {
			for _, w := range written(l, c1, enforce.Held{"memory.high": "7"}, enforce.Scan) {
				kinds, cause = append(kinds, w.Kind), w.Cause
			}
			time.Sleep(30 * time.Second)
		}
		want := []enforce.Kind{enforce.Repair, enforce.Repair, enforce.Repair, enforce.Repair, enforce.Repair, enforce.Fight}
		if fmt.Sprint(kinds) != fmt.Sprint(want) || cause != "UpdateContainerResources" {
			t.Errorf("got %v, cause %q; want %v", kinds, cause, want)
		}
		l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
		if due := written(l, c1, enforce.Held{"memory.high": "7"}, enforce.Called); len(due) != 1 {
			t.Error("the plugin's next wish is not written")
		}
	})
}

func TestRepairsFarApartAreNoFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := enforce.NewLedger()
		l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
		written(l, c1, enforce.Held{"memory.high": "max"}, enforce.Called)
		for range 8 {
			if due := written(l, c1, enforce.Held{"memory.high": "7"}, enforce.Scan); len(due) != 1 || due[0].Kind != enforce.Repair {
				t.Fatalf("%+v is due", due)
			}
			time.Sleep(11 * time.Minute)
		}
	})
}

// A burst that was cut to the quota of the moment comes back whole with a larger quota.
func TestFittedValueComesBackWhole(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "cpu.max.burst", "20000"))
	written(l, c1, enforce.Held{"cpu.max.burst": "0"}, enforce.Called)
	quota := "10000"
	fit := plain{func() string { return quota }}
	if due := l.Record(c1).Begin(enforce.Held{"cpu.max.burst": "10000"}, enforce.Called, fit); len(due) > 0 {
		t.Errorf("%+v is due", due)
	}
	quota = "20000"
	if due := l.Record(c1).Begin(enforce.Held{"cpu.max.burst": "10000"}, enforce.Called, fit); len(due) != 1 || due[0].Value != "20000" {
		t.Errorf("%+v is due", due)
	}
	if v := l.Record(c1).Values()[enforce.File("cpu.max.burst")]; *v.Kubelet != "0" {
		t.Errorf("kubelet's value is %s", *v.Kubelet)
	}
}

// Many who each want one file lose none of them.
func TestAskAtOnce(t *testing.T) {
	l := enforce.NewLedger()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			l.Record(c1).Ask(wish("10-a", fmt.Sprint("f", i), "1"))
			if unlock, ok := l.Record(c1).Lock(); ok {
				written(l, c1, enforce.Held{fmt.Sprint("f", i): "0"}, enforce.Called)
				unlock()
			}
		})
	}
	all.Wait()
	if n := len(l.Record(c1).Files()); n != 64 {
		t.Errorf("%d files are noted, want 64", n)
	}
}

func TestRevert(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
	revert := l.Record(c1).Ask(wish("10-a", "memory.high", "2"), wish("10-a", "cpu.idle", "1"))
	revert()
	w, _ := l.Record(c1).Owner(enforce.File("memory.high"))
	if _, idle := l.Record(c1).Owner(enforce.File("cpu.idle")); w.Value != "1" || idle {
		t.Errorf("memory.high is %v, cpu.idle is wished: %v", w, idle)
	}
	l.Record(c1).Ask(wish("10-a", "memory.high", "3"))
	revert()
	if w, _ := l.Record(c1).Owner(enforce.File("memory.high")); w.Value != "3" {
		t.Errorf("a later wish was taken back: %+v", w)
	}
}

func TestFieldWishEndsWithAnotherValueOfKubelet(t *testing.T) {
	l, quota, first := enforce.NewLedger(), enforce.Field("cpu_quota"), "100"
	asked := []enforce.Asked{{Target: quota, Wish: enforce.Wish{Plugin: "10-a", Value: "200"}, Has: &first}}
	kubelet := func(v string) map[enforce.Target]string { return map[enforce.Target]string{quota: v} }
	l.Record(c1).Updated(enforce.Update{Kubelet: kubelet("100"), Asked: asked, Sent: kubelet("200")})
	l.Record(c1).Updated(enforce.Update{Kubelet: kubelet("100"), Sent: kubelet("200")})
	if _, ok := l.Record(c1).Owner(quota); !ok {
		t.Fatal("the wish ended when kubelet repeated its value")
	}
	l.Record(c1).Updated(enforce.Update{Kubelet: kubelet("300"), Asked: asked, Sent: kubelet("200")})
	if _, ok := l.Record(c1).Owner(quota); !ok {
		t.Error("a wish that is repeated ended")
	}
	l.Record(c1).Updated(enforce.Update{Kubelet: kubelet("200"), Sent: kubelet("200")}) // just the plugin's
	if _, ok := l.Record(c1).Owner(quota); ok || len(l.Record(c1).Values()) > 0 {
		t.Errorf("the record is %+v", l.Record(c1).Values())
	}
}

func TestFieldIsResetWhenNoPluginWantsIt(t *testing.T) {
	l, quota, kubelet := enforce.NewLedger(), enforce.Field("cpu_quota"), "100"
	l.Record(c1).Updated(enforce.Update{
		Asked: []enforce.Asked{{Target: quota, Wish: enforce.Wish{Plugin: "10-a", Value: "200"}, Has: &kubelet}},
		Sent:  map[enforce.Target]string{quota: "200"},
	})
	if r := l.Record(c1).Resets(); len(r) > 0 {
		t.Errorf("%v is reset while a plugin wants it", r)
	}
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if r := l.Record(c1).Resets(); r[quota] != "100" {
		t.Errorf("the resets are %v", r)
	}
	l.Record(c1).Updated(enforce.Update{Sent: map[enforce.Target]string{quota: "100"}})
	if all := l.Objects(); len(all) > 0 {
		t.Errorf("%v remain", all)
	}
}

// TestRetain also holds that the record of a pod that is being made stays.
func TestRetain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		l, err := enforce.OpenLedger(t.Context(), dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Record(c1).Ask(wish("10-a", "memory.high", "1"))
		l.Record(enforce.ID{Pod: "u1"}).Ask(wish("10-a", "memory.high", "1"))
		l.Record(enforce.ID{Pod: "new"}).Ask(wish("10-a", "memory.high", "1"))
		l.Retain(func(id enforce.ID) bool { return id == enforce.ID{Pod: "u1"} }, nil)
		if got := fmt.Sprint(l.Objects()); got != "[{new } {u1 }]" {
			t.Errorf("the objects are %s", got)
		}
		time.Sleep(time.Hour)
		l.Record(enforce.ID{Pod: "new"}).Located("/podnew")
		l.Retain(func(enforce.ID) bool { return false }, func(group string) bool { return group == "/podnew" })
		if got := fmt.Sprint(l.Objects()); got != "[{new }]" || !l.Record(enforce.ID{Pod: "new"}).Vacant() {
			t.Errorf("the objects are %s, want the pod whose cgroup exists", got)
		}
		l.Retain(func(enforce.ID) bool { return false }, func(string) bool { return false })
		if got, saved := l.Objects(), openState(t, dir).Objects(); len(got) > 0 || len(saved) > 0 {
			t.Errorf("the objects are %v, and %v after a restart", got, saved)
		}
	})
}

// full is a ledger with 2,000 containers and 10 values each.
func full(tb testing.TB) *enforce.Ledger {
	l, err := enforce.OpenLedger(tb.Context(), tb.TempDir(), observe.Discard())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	for pod := range 500 {
		for c := range 4 {
			id := enforce.ID{Pod: fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", pod), Container: fmt.Sprintf("%064d", pod*4+c)}
			var asked []enforce.Asked
			held := enforce.Held{}
			for f := range 10 {
				file := fmt.Sprintf("memory.file%d", f)
				asked = append(asked, wish(fmt.Sprintf("%d-plugin", f%3), file, fmt.Sprint(1<<30+c)))
				asked[f].Generation = "0123456789abcdef"
				held[file] = "max"
			}
			l.Record(id).Ask(asked...)
			written(l, id, held, enforce.Called)
		}
	}
	return l
}

// TestMemoryOfAFullNode holds that 2,000 containers with 10 values each take less than 20 MB.
func TestMemoryOfAFullNode(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	l := full(t)
	used := heap() - before
	t.Logf("%d bytes a value", used/20_000)
	if used > 20_000_000 {
		t.Errorf("the ledger takes %d bytes", used)
	}
	runtime.KeepAlive(l)
}

// BenchmarkScan compares the values of a full node with what the kernel holds.
func BenchmarkScan(b *testing.B) {
	l := full(b)
	held := map[enforce.ID]enforce.Held{}
	for _, id := range l.Objects() {
		h := enforce.Held{}
		for t, v := range l.Record(id).Values() {
			f, _ := t.File()
			h[f] = v.Read
		}
		held[id] = h
	}
	for b.Loop() {
		for _, id := range l.Objects() {
			l.Record(id).Files()
			l.Record(id).Begin(held[id], enforce.Scan, plain{})
		}
	}
}

// BenchmarkChange is what a new container costs whose quota a plugin sets, and its end, in a pod with so many containers.
// The directory is in memory, as on a node.
func BenchmarkChange(b *testing.B) {
	for _, containers := range []int{1, 50, 4500} {
		b.Run(fmt.Sprintf("containers=%d", containers), func(b *testing.B) { benchmarkChange(b, containers) })
	}
}

func benchmarkChange(b *testing.B, containers int) {
	dir := filepath.Join("/dev/shm", fmt.Sprint("ledger-", os.Getpid()))
	l, err := enforce.OpenLedger(b.Context(), dir, observe.Discard())
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	defer l.Close()
	quota, period := enforce.Field("cpu_quota"), enforce.Field("cpu_period")
	create := func(container string) enforce.ID {
		id := enforce.ID{Pod: "u1", Container: container}
		asked := []enforce.Asked{wish("10-a", "", "50000"), wish("10-a", "", "100000")}
		kubelet := "0"
		asked[0].Target, asked[1].Target = quota, period
		asked[0].Has, asked[1].Has = &kubelet, &kubelet
		sent := map[enforce.Target]string{quota: "50000", period: "100000", enforce.Field("cpu_shares"): "2"}
		l.Record(id).Updated(enforce.Update{Asked: asked, Sent: sent})
		if len(l.Raised("u1")) > 0 || len(l.Record(enforce.ID{Pod: "u1"}).Lifted()) > 0 {
			b.Fatal("limits of the pod are lifted")
		}
		return id
	}
	for c := range containers - 1 {
		create(fmt.Sprint("c", c))
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Record(create("new")).Remove()
	}
}

// TestRaised: the limits for which a pod's may be lifted are those that plugins want now, also after a restart.
func TestRaised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	c2 := enforce.ID{Pod: c1.Pod, Container: "c2"}
	raises := wish("10-a", "memory.max", "max")
	raises.Raises = true
	l.Record(c1).Ask(raises, wish("10-a", "cpu.idle", "1"))
	l.Record(c2).Ask(raises, wish("20-b", "cpu.idle", "1"))
	l.Lift(c1.Pod, "memory.max", raises.Wish)
	check := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, r := range l.Raised(c1.Pod) {
			got = append(got, r.Container+" "+string(r.Target))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q are raised, want %q", when, got, want)
		}
	}
	check("at first", "c1 file memory.max", "c2 file memory.max")
	l = openState(t, dir)
	check("after a restart", "c1 file memory.max", "c2 file memory.max")
	l.Withdraw(func(id enforce.ID, _ enforce.Target, w enforce.Wish) bool { return id == c2 && w.Plugin == "10-a" })
	check("one is withdrawn", "c1 file memory.max")
	l.Record(c1).Move("another")
	check("a container has moved")
	if got := l.Raised("another"); len(got) != 1 {
		t.Errorf("in the other pod %v are raised", got)
	}
	l.Record(enforce.ID{Pod: "another", Container: "c1"}).Remove()
	if got := l.Raised("another"); len(got) != 0 {
		t.Errorf("in the other pod %v are raised, and there is none", got)
	}
}

// A plugin that repeats a wish keeps the time of its first one; another value begins anew.
func TestTimeOfARepeatedWish(t *testing.T) {
	l := enforce.NewLedger()
	ask := func(value string, second int64) enforce.Wish {
		w := wish("10-a", "cpu.idle", value)
		w.At = time.Unix(second, 0)
		l.Record(c1).Ask(w)
		got, _ := l.Record(c1).Owner(enforce.File("cpu.idle"))
		return got
	}
	ask("1", 1)
	ask("1", 2)
	if w := ask("1", 3); w.First() != time.Unix(1, 0) || w.At != time.Unix(3, 0) {
		t.Errorf("the wish is %+v", w)
	}
	if w := ask("0", 4); w.First() != time.Unix(4, 0) {
		t.Errorf("the wish is %+v", w)
	}
	revert := l.Record(c1).Ask(wish("10-a", "cpu.idle", "0"))
	revert()
	if w, _ := l.Record(c1).Owner(enforce.File("cpu.idle")); w.First() != time.Unix(4, 0) || w.At != time.Unix(4, 0) {
		t.Errorf("after the revert the wish is %+v", w)
	}
}

// A container is found by its ID, or by the beginning of it if that is no other's.
func TestFindContainer(t *testing.T) {
	l := enforce.NewLedger()
	for _, id := range []enforce.ID{{"p", ""}, {"p", "abc"}, {"q", "abd"}, {"q", "ab"}} {
		l.Record(id).Ask(enforce.Asked{Target: enforce.File("cpu.idle"), Wish: enforce.Wish{Plugin: "10-test", Value: "1"}})
	}
	for container, want := range map[string]enforce.ID{"abc": {"p", "abc"}, "abd": {"q", "abd"}, "ab": {"q", "ab"}, "a": {}, "": {}, "x": {}, "abcd": {}} {
		if got, ok := l.Find(container); got != want && ok || ok != (want != enforce.ID{}) {
			t.Errorf("%q is %v, %t; want %v", container, got, ok, want)
		}
	}
	if l.Empty() || !enforce.NewLedger().Empty() {
		t.Error("a ledger with records is empty, or an empty one is not")
	}
}

// inUse is a kernel with memory in use, below which no limit is undone.
type inUse struct {
	plain
	bytes string
}

func (k inUse) FitUndo(string, string) string { return k.bytes }

// While an undo waits for memory in use, kubelet sets a limit, to which the kernel brings the use down at once: it is kubelet's.
func TestLimitOfKubeletsThatIsJustWhatIsInUse(t *testing.T) {
	l, id := enforce.NewLedger(), enforce.ID{Pod: "u1", Container: "c1"}
	carry := func(held, used string) {
		due := l.Record(id).Begin(enforce.Held{"memory.max": held}, enforce.Called, inUse{bytes: used})
		done := make([]enforce.Done, len(due))
		for i, w := range due {
			done[i] = enforce.Done{Write: w, Read: w.Value}
		}
		l.Record(id).End(done)
	}
	l.Record(id).Ask(enforce.Asked{Target: enforce.File("memory.max"), Wish: enforce.Wish{Plugin: "10-a", Value: "900"}})
	carry("400", "300")
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	carry("900", "800")
	carry("500", "500")
	if l.Record(id).Has() {
		t.Errorf("the record is %+v, and kubelet's limit is there", l.Record(id).Values())
	}
}
