package ledger_test

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
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

var c1 = ledger.ID{Pod: "u1", Container: "c1"}

func wish(plugin, file, value string) ledger.Asked {
	return ledger.Asked{Target: ledger.File(file), Wish: ledger.Wish{Plugin: plugin, Hook: abi.Tick, Value: value, At: time.Unix(1, 0)}}
}

// plain is a kernel that shows what was written; fit, if not nil, is its Fit.
type plain struct{ fit func() string }

func (plain) FitUndo(_, kubelet string) string { return kubelet }
func (plain) Exact(string, string) string      { return "" }
func (plain) Same(string) string               { return "" }

func (k plain) Fit(_, value string) string {
	if k.fit != nil {
		return k.fit()
	}
	return value
}

func (plain) Holds(_, value, held string) bool { return value == held }

// written carries out what is due, on a kernel that takes everything.
func written(l *ledger.Ledger, id ledger.ID, held ledger.Held, why ledger.Why) []ledger.Write {
	due := l.Begin(id, held, why, plain{})
	done := make([]ledger.Done, len(due))
	for i, w := range due {
		done[i] = ledger.Done{Write: w, Read: w.Value}
		if w.Kind != ledger.Fight {
			held[w.File] = w.Value
		}
	}
	l.End(id, done)
	return due
}

func TestFirstOwnerKeepsTheTarget(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("20-b", "cpu.idle", "1"))
	l.Ask(c1, wish("10-a", "cpu.idle", "0"))
	if w, ok := l.Owner(c1, ledger.File("cpu.idle")); !ok || w.Plugin != "20-b" || w.Value != "1" {
		t.Errorf("the owner is %+v", w)
	}
	l.Withdraw(func(_ ledger.ID, _ ledger.Target, w ledger.Wish) bool { return w.Plugin == "20-b" })
	if w, ok := l.Owner(c1, ledger.File("cpu.idle")); !ok || w.Plugin != "10-a" {
		t.Errorf("without it the owner is %+v", w)
	}
}

func TestValueThatIsThereIsNotWritten(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("10-a", "cpu.idle", "1"))
	if due := written(l, c1, ledger.Held{"cpu.idle": "1"}, ledger.Called); len(due) > 0 {
		t.Errorf("%+v is due", due)
	}
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	if files := l.Files(c1); len(files) > 0 {
		t.Errorf("%v is to be undone, and nobody wrote it", files)
	}
}

// kubelet may write just what a plugin has set before. The plugin's last value holds, and the undo brings
// kubelet's back.
func TestKubeletsWriteOfAnEarlierValue(t *testing.T) {
	l := ledger.New()
	held := ledger.Held{"memory.high": "max"}
	for _, value := range []string{"78", "60"} {
		l.Ask(c1, wish("10-a", "memory.high", value))
		written(l, c1, held, ledger.Called)
	}
	held["memory.high"] = "78"
	if due := written(l, c1, held, ledger.Called); len(due) != 1 || due[0].Kind != ledger.Repair || held["memory.high"] != "60" {
		t.Fatalf("%+v was due, and the kernel has %s", due, held["memory.high"])
	}
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	if written(l, c1, held, ledger.Scan); held["memory.high"] != "78" {
		t.Errorf("the undo wrote %s, kubelet's is 78", held["memory.high"])
	}
}

// A file that kubelet has written since is not undone, and of it nothing is left to know.
func TestNoRecordIsLeftOfAValueThatKubeletReplaced(t *testing.T) {
	l, held := ledger.New(), ledger.Held{"memory.high": "max"}
	l.Ask(c1, wish("10-a", "memory.high", "1"))
	written(l, c1, held, ledger.Called)
	held["memory.high"] = "7"
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	if due := written(l, c1, held, ledger.Called); len(due) > 0 || l.Has(c1) {
		t.Errorf("%+v is due, and the record is %+v", due, l.Record(c1))
	}
}

// A write that failed is tried again by each scan, since the reason may be gone. It is said once, and
// no call tries it again before the plugin asks again or something else has changed the file.
func TestFailedWriteIsTriedAgainByTheScan(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("10-a", "cpu.max.burst", "1"))
	try := func(held string, why ledger.Why, err string) (outcome string) {
		for _, w := range l.Begin(c1, ledger.Held{"cpu.max.burst": held}, why, plain{}) {
			done := []ledger.Done{{Write: w, Err: errors.New(err)}}
			l.End(c1, done)
			outcome = fmt.Sprintf("tried, again %v", done[0].Again)
		}
		return outcome
	}
	for i, step := range []struct {
		held string
		why  ledger.Why
		err  string
		want string
	}{
		{"0", ledger.Called, "busy", "tried, again false"},
		{"0", ledger.Called, "busy", ""},
		{"0", ledger.Scan, "busy", "tried, again true"},
		{"0", ledger.Scan, "invalid", "tried, again false"},
		{"5", ledger.Scan, "invalid", "tried, again false"},
		{"5", ledger.Scan, "invalid", "tried, again true"},
	} {
		if got := try(step.held, step.why, step.err); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	l.Ask(c1, wish("10-a", "cpu.max.burst", "1"))
	if got := try("5", ledger.Called, "invalid"); got != "tried, again false" {
		t.Errorf("when the plugin asked again: %q", got)
	}
	if v := l.Record(c1)[ledger.File("cpu.max.burst")]; v.Failed == nil || v.Failed.Reason != "invalid" || *v.Kubelet != "5" {
		t.Errorf("the record is %+v", v)
	}
}

// A scan tries a failed undo again, also of a pod without a sandbox.
func TestFailedUndoOfAVacantPodIsTriedAgain(t *testing.T) {
	l, pod := ledger.New(), ledger.ID{Pod: "u"}
	l.Ask(pod, wish("10-a", "memory.high", "5"))
	written(l, pod, ledger.Held{"memory.high": "max"}, ledger.Called)
	l.Vacate(pod, func(ledger.ID) bool { return false }, func(string) bool { return true })
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	for n := range 3 {
		due := l.Begin(pod, ledger.Held{"memory.high": "5"}, ledger.Vacant, plain{})
		if len(due) != 1 || due[0].Kind != ledger.Undo {
			t.Fatalf("at scan %d %+v is due, want an undo", n, due)
		}
		l.End(pod, []ledger.Done{{Write: due[0], Err: errors.New("read-only")}})
	}
}

// A repair that fails is one repair, however often the scan tries it, and no fight.
func TestFailedRepairIsNoFight(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("10-a", "memory.high", "1"))
	written(l, c1, ledger.Held{"memory.high": "max"}, ledger.Called)
	for range 8 {
		due := l.Begin(c1, ledger.Held{"memory.high": "7"}, ledger.Scan, plain{})
		if len(due) != 1 || due[0].Kind != ledger.Repair {
			t.Fatalf("%+v is due", due)
		}
		l.End(c1, []ledger.Done{{Write: due[0], Err: errors.New("read-only")}})
	}
	if v := l.Record(c1)[ledger.File("memory.high")]; v.Drift.Repairs != 1 || v.Drift.Fight {
		t.Errorf("the record is %+v", v)
	}
	held := ledger.Held{"memory.high": "7"}
	if due := written(l, c1, held, ledger.Scan); len(due) != 1 || held["memory.high"] != "1" {
		t.Errorf("%+v was due, and the kernel has %s", due, held["memory.high"])
	}
}

func TestFightEndsAfterFiveRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger.New()
		l.Ask(c1, wish("10-a", "memory.high", "1"))
		written(l, c1, ledger.Held{"memory.high": "max"}, ledger.Called)
		l.Note(c1, "UpdateContainerResources")
		var kinds []ledger.Kind
		var cause string
		for range 8 {
			for _, w := range written(l, c1, ledger.Held{"memory.high": "7"}, ledger.Scan) {
				kinds, cause = append(kinds, w.Kind), w.Cause
			}
			time.Sleep(30 * time.Second)
		}
		want := []ledger.Kind{ledger.Repair, ledger.Repair, ledger.Repair, ledger.Repair, ledger.Repair, ledger.Fight}
		if fmt.Sprint(kinds) != fmt.Sprint(want) || cause != "UpdateContainerResources" {
			t.Errorf("got %v, cause %q; want %v", kinds, cause, want)
		}
		l.Ask(c1, wish("10-a", "memory.high", "1"))
		if due := written(l, c1, ledger.Held{"memory.high": "7"}, ledger.Called); len(due) != 1 {
			t.Error("the plugin's next wish is not written")
		}
	})
}

func TestRepairsFarApartAreNoFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger.New()
		l.Ask(c1, wish("10-a", "memory.high", "1"))
		written(l, c1, ledger.Held{"memory.high": "max"}, ledger.Called)
		for range 8 {
			if due := written(l, c1, ledger.Held{"memory.high": "7"}, ledger.Scan); len(due) != 1 || due[0].Kind != ledger.Repair {
				t.Fatalf("%+v is due", due)
			}
			time.Sleep(11 * time.Minute)
		}
	})
}

// A burst that was cut to the quota of the moment comes back whole with a larger quota.
func TestFittedValueComesBackWhole(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("10-a", "cpu.max.burst", "20000"))
	written(l, c1, ledger.Held{"cpu.max.burst": "0"}, ledger.Called)
	quota := "10000"
	fit := plain{func() string { return quota }}
	if due := l.Begin(c1, ledger.Held{"cpu.max.burst": "10000"}, ledger.Called, fit); len(due) > 0 {
		t.Errorf("%+v is due", due)
	}
	quota = "20000"
	if due := l.Begin(c1, ledger.Held{"cpu.max.burst": "10000"}, ledger.Called, fit); len(due) != 1 || due[0].Value != "20000" {
		t.Errorf("%+v is due", due)
	}
	if v := l.Record(c1)[ledger.File("cpu.max.burst")]; *v.Kubelet != "0" {
		t.Errorf("kubelet's value is %s", *v.Kubelet)
	}
}

// Many who each want one file lose none of them.
func TestAskAtOnce(t *testing.T) {
	l := ledger.New()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			l.Ask(c1, wish("10-a", fmt.Sprint("f", i), "1"))
			if unlock, ok := l.Lock(t.Context(), c1); ok {
				written(l, c1, ledger.Held{fmt.Sprint("f", i): "0"}, ledger.Called)
				unlock()
			}
		})
	}
	all.Wait()
	if n := len(l.Files(c1)); n != 64 {
		t.Errorf("%d files are noted, want 64", n)
	}
}

func TestRevert(t *testing.T) {
	l := ledger.New()
	l.Ask(c1, wish("10-a", "memory.high", "1"))
	revert := l.Ask(c1, wish("10-a", "memory.high", "2"), wish("10-a", "cpu.idle", "1"))
	revert()
	w, _ := l.Owner(c1, ledger.File("memory.high"))
	if _, idle := l.Owner(c1, ledger.File("cpu.idle")); w.Value != "1" || idle {
		t.Errorf("memory.high is %v, cpu.idle is wished: %v", w, idle)
	}
	l.Ask(c1, wish("10-a", "memory.high", "3"))
	revert()
	if w, _ := l.Owner(c1, ledger.File("memory.high")); w.Value != "3" {
		t.Errorf("a later wish was taken back: %+v", w)
	}
}

func TestFieldWishEndsWithAnotherValueOfKubelet(t *testing.T) {
	l, quota := ledger.New(), ledger.Field("cpu_quota")
	asked := []ledger.Asked{{Target: quota, Wish: ledger.Wish{Plugin: "10-a", Value: "200"}}}
	kubelet := func(v string) map[ledger.Target]string { return map[ledger.Target]string{quota: v} }
	l.Updated(c1, ledger.Update{Kubelet: kubelet("100"), Asked: asked, Sent: kubelet("200")})
	l.Updated(c1, ledger.Update{Kubelet: kubelet("100"), Sent: kubelet("200")})
	if _, ok := l.Owner(c1, quota); !ok {
		t.Fatal("the wish ended when kubelet repeated its value")
	}
	l.Updated(c1, ledger.Update{Kubelet: kubelet("300"), Asked: asked, Sent: kubelet("200")})
	if _, ok := l.Owner(c1, quota); !ok {
		t.Error("a wish that is repeated ended")
	}
	l.Updated(c1, ledger.Update{Kubelet: kubelet("200"), Sent: kubelet("200")}) // just the plugin's
	if _, ok := l.Owner(c1, quota); ok || len(l.Record(c1)) > 0 {
		t.Errorf("the record is %+v", l.Record(c1))
	}
}

func TestFieldIsResetWhenNoPluginWantsIt(t *testing.T) {
	l, quota := ledger.New(), ledger.Field("cpu_quota")
	l.Updated(c1, ledger.Update{
		Before: map[ledger.Target]string{quota: "100"}, Sent: map[ledger.Target]string{quota: "200"},
		Asked: []ledger.Asked{{Target: quota, Wish: ledger.Wish{Plugin: "10-a", Value: "200"}}},
	})
	if r := l.Resets(c1); r != nil {
		t.Errorf("%v is reset while a plugin wants it", r)
	}
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	if r := l.Resets(c1); r[quota] != "100" {
		t.Errorf("the resets are %v", r)
	}
	l.Updated(c1, ledger.Update{Sent: map[ledger.Target]string{quota: "100"}})
	if all := l.Objects(); len(all) > 0 {
		t.Errorf("%v remain", all)
	}
}

// TestRetain also holds that the record of a pod that is being made stays.
func TestRetain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		l, err := ledger.Open(t.Context(), dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Ask(c1, wish("10-a", "memory.high", "1"))
		l.Ask(ledger.ID{Pod: "u1"}, wish("10-a", "memory.high", "1"))
		l.Ask(ledger.ID{Pod: "new"}, wish("10-a", "memory.high", "1"))
		l.Retain(func(id ledger.ID) bool { return id == ledger.ID{Pod: "u1"} }, nil)
		if got := fmt.Sprint(l.Objects()); got != "[{new } {u1 }]" {
			t.Errorf("the objects are %s", got)
		}
		time.Sleep(time.Hour)
		l.Located(ledger.ID{Pod: "new"}, "/podnew")
		l.Retain(func(ledger.ID) bool { return false }, func(group string) bool { return group == "/podnew" })
		if got := fmt.Sprint(l.Objects()); got != "[{new }]" || !l.Vacant(ledger.ID{Pod: "new"}) {
			t.Errorf("the objects are %s, want the pod whose cgroup exists", got)
		}
		l.Retain(func(ledger.ID) bool { return false }, func(string) bool { return false })
		if got, saved := l.Objects(), openState(t, dir).Objects(); len(got) > 0 || len(saved) > 0 {
			t.Errorf("the objects are %v, and %v after a restart", got, saved)
		}
	})
}

// full is a ledger with 2,000 containers and 10 values each.
func full(tb testing.TB) *ledger.Ledger {
	l, err := ledger.Open(tb.Context(), tb.TempDir(), observe.Discard())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	for pod := range 500 {
		for c := range 4 {
			id := ledger.ID{Pod: fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", pod), Container: fmt.Sprintf("%064d", pod*4+c)}
			var asked []ledger.Asked
			held := ledger.Held{}
			for f := range 10 {
				file := fmt.Sprintf("memory.file%d", f)
				asked = append(asked, wish(fmt.Sprintf("%d-plugin", f%3), file, fmt.Sprint(1<<30+c)))
				asked[f].Generation = "0123456789abcdef"
				held[file] = "max"
			}
			l.Ask(id, asked...)
			written(l, id, held, ledger.Called)
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
	held := map[ledger.ID]ledger.Held{}
	for _, id := range l.Objects() {
		h := ledger.Held{}
		for t, v := range l.Record(id) {
			f, _ := t.File()
			h[f] = v.Read
		}
		held[id] = h
	}
	for b.Loop() {
		for _, id := range l.Objects() {
			l.Files(id)
			l.Begin(id, held[id], ledger.Scan, plain{})
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
	l, err := ledger.Open(b.Context(), dir, observe.Discard())
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	defer l.Close()
	quota, period := ledger.Field("cpu_quota"), ledger.Field("cpu_period")
	create := func(container string) ledger.ID {
		id := ledger.ID{Pod: "u1", Container: container}
		asked := []ledger.Asked{wish("10-a", "", "50000"), wish("10-a", "", "100000")}
		asked[0].Target, asked[1].Target = quota, period
		sent := map[ledger.Target]string{quota: "50000", period: "100000", ledger.Field("cpu_shares"): "2"}
		l.Updated(id, ledger.Update{Asked: asked, Sent: sent, Before: map[ledger.Target]string{quota: "0", period: "0"}})
		if len(l.Raised("u1")) > 0 || len(l.Lifted("u1")) > 0 {
			b.Fatal("limits of the pod are lifted")
		}
		return id
	}
	for c := range containers - 1 {
		create(fmt.Sprint("c", c))
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Remove(create("new"))
	}
}

// TestRaised: the limits for which a pod's may be lifted are those that plugins want now, also after a restart.
func TestRaised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	c2 := ledger.ID{Pod: c1.Pod, Container: "c2"}
	raises := wish("10-a", "memory.max", "max")
	raises.Raises = true
	l.Ask(c1, raises, wish("10-a", "cpu.idle", "1"))
	l.Ask(c2, raises, wish("20-b", "cpu.idle", "1"))
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
	l.Withdraw(func(id ledger.ID, _ ledger.Target, w ledger.Wish) bool { return id == c2 && w.Plugin == "10-a" })
	check("one is withdrawn", "c1 file memory.max")
	l.Move(c1, "another")
	check("a container has moved")
	if got := l.Raised("another"); len(got) != 1 {
		t.Errorf("in the other pod %v are raised", got)
	}
	l.Remove(ledger.ID{Pod: "another", Container: "c1"})
	if got := l.Raised("another"); len(got) != 0 {
		t.Errorf("in the other pod %v are raised, and there is none", got)
	}
}

// A plugin that repeats a wish keeps the time of its first one; another value begins anew.
func TestTimeOfARepeatedWish(t *testing.T) {
	l := ledger.New()
	ask := func(value string, second int64) ledger.Wish {
		w := wish("10-a", "cpu.idle", value)
		w.At = time.Unix(second, 0)
		l.Ask(c1, w)
		got, _ := l.Owner(c1, ledger.File("cpu.idle"))
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
	revert := l.Ask(c1, wish("10-a", "cpu.idle", "0"))
	revert()
	if w, _ := l.Owner(c1, ledger.File("cpu.idle")); w.First() != time.Unix(4, 0) || w.At != time.Unix(4, 0) {
		t.Errorf("after the revert the wish is %+v", w)
	}
}

// A container is found by its ID, or by the beginning of it if that is no other's.
func TestFindContainer(t *testing.T) {
	l := ledger.New()
	for _, id := range []ledger.ID{{"p", ""}, {"p", "abc"}, {"q", "abd"}, {"q", "ab"}} {
		l.Ask(id, ledger.Asked{Target: ledger.File("cpu.idle"), Wish: ledger.Wish{Plugin: "10-test", Value: "1"}})
	}
	for container, want := range map[string]ledger.ID{"abc": {"p", "abc"}, "abd": {"q", "abd"}, "ab": {"q", "ab"}, "a": {}, "": {}, "x": {}, "abcd": {}} {
		if got, ok := l.Find(container); got != want && ok || ok != (want != ledger.ID{}) {
			t.Errorf("%q is %v, %t; want %v", container, got, ok, want)
		}
	}
	if l.Empty() || !ledger.New().Empty() {
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
	l, id := ledger.New(), ledger.ID{Pod: "u1", Container: "c1"}
	carry := func(held, used string) {
		due := l.Begin(id, ledger.Held{"memory.max": held}, ledger.Called, inUse{bytes: used})
		done := make([]ledger.Done, len(due))
		for i, w := range due {
			done[i] = ledger.Done{Write: w, Read: w.Value}
		}
		l.End(id, done)
	}
	l.Ask(id, ledger.Asked{Target: ledger.File("memory.max"), Wish: ledger.Wish{Plugin: "10-a", Value: "900"}})
	carry("400", "300")
	l.Withdraw(func(ledger.ID, ledger.Target, ledger.Wish) bool { return true })
	carry("900", "800")
	carry("500", "500")
	if l.Has(id) {
		t.Errorf("the record is %+v, and kubelet's limit is there", l.Record(id))
	}
}
