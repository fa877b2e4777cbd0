package plugin_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func wantKV(t *testing.T, d *plugin.Txn, key, want string, errno abi.Errno) {
	t.Helper()
	if got, e := d.Get(key); got != want || e != errno {
		t.Errorf("%s is %q, %v, want %q, %v", key, got, e, want, errno)
	}
}

func TestKV(t *testing.T) {
	kv := plugin.NewKV()
	first, second := kv.Begin(), kv.Begin()
	if errno := first.Set("a", "1"); errno != abi.OK {
		t.Fatal(errno)
	}
	wantKV(t, first, "a", "1", abi.OK)
	wantKV(t, second, "a", "", abi.NotFound) // not committed
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	wantKV(t, second, "a", "1", abi.OK)
	second.Delete("a")
	second.Delete("absent")
	wantKV(t, second, "a", "", abi.NotFound)
	wantKV(t, kv.Begin(), "a", "1", abi.OK)
	if err := second.Commit(); err != nil {
		t.Fatal(err)
	}
	wantKV(t, kv.Begin(), "a", "", abi.NotFound)
	for want, set := range map[abi.Errno][2]string{
		abi.Invalid:  {"", "v"},
		abi.TooLarge: {strings.Repeat("k", plugin.MaxKVKey+1), "v"},
		abi.OK:       {strings.Repeat("k", plugin.MaxKVKey), strings.Repeat("v", plugin.MaxKVValue)},
	} {
		if got := kv.Begin().Set(set[0], set[1]); got != want {
			t.Errorf("a key of %d: got %v, want %v", len(set[0]), got, want)
		}
	}
	if got := kv.Begin().Set("k", strings.Repeat("v", plugin.MaxKVValue+1)); got != abi.TooLarge {
		t.Errorf("a value too large: %v", got)
	}
}

// TestKVDurable counts the changes of durable values: a call that writes the value that is there, or
// another key, is none.
func TestKVDurable(t *testing.T) {
	kv := plugin.NewKV()
	if dropped := kv.Restore(map[string]string{"seen/a": "1", "old": "2", "seen/large": strings.Repeat("v", plugin.MaxKVValue+1)}); dropped != 1 {
		t.Errorf("%d values were too large, want 1", dropped)
	}
	set := func(key, value string) {
		t.Helper()
		txn := kv.Begin()
		if txn.Set(key, value); value == "" {
			txn.Delete(key)
		}
		if err := txn.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	set("old too", "3") // before it is known which are durable
	changes, known := 0, 0
	if dropped := kv.SetDurable([]string{"seen/"}, func() { changes++ }); dropped != 1 {
		t.Errorf("%d values were not durable any more, want 1", dropped)
	}
	want := func(n int, want ...string) {
		t.Helper()
		values, revision := kv.Durable(known)
		if known = revision; changes != n || len(values)*2 != len(want) || len(want) > 0 && values[want[0]] != want[1] || len(want) > 0 == (values == nil) {
			t.Errorf("%d changes, %v, want %d, %v", changes, values, n, want)
		}
	}
	want(0, "seen/a", "1") // one was dropped, which is a change of the file
	wantKV(t, kv.Begin(), "old", "", abi.NotFound)
	wantKV(t, kv.Begin(), "old too", "3", abi.OK)
	set("seen/a", "1")
	set("other", "1")
	set("seen/none", "")
	want(0)
	set("seen/a", "2")
	want(1, "seen/a", "2")
	kv.SetDurable([]string{""}, func() { changes++ })
	want(1, "seen/a", "2", "old too", "3", "other", "1")
	set("other", "")
	set("old too", "")
	want(3, "seen/a", "2")
	kv.SetDurable(nil, nil)
	set("seen/a", "3")
	if values, revision := kv.Durable(known); changes != 3 || len(values) > 0 || revision == known {
		t.Errorf("%d changes, %v of a plugin that keeps nothing", changes, values)
	}
	wantKV(t, kv.Begin(), "seen/a", "3", abi.OK)
}

// A call may delete a restored value before it is known which are durable: a restart does not bring it
// back.
func TestKVDurableDeletedBeforeTheFirstActivation(t *testing.T) {
	kv := plugin.NewKV()
	kv.Restore(map[string]string{"seen/a": "1", "seen/b": "2"})
	txn := kv.Begin()
	txn.Delete("seen/a")
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
	kv.SetDurable([]string{"seen/"}, func() {})
	if values, _ := kv.Durable(0); len(values) != 1 || values["seen/b"] != "2" {
		t.Errorf("%v is to be saved, want seen/b alone", values)
	}
}

// TestKVLimits fills a store by number and by bytes, within a call and by two.
func TestKVLimits(t *testing.T) {
	full := func(kv *plugin.KV, d *plugin.Txn) int {
		for i := 0; ; i++ {
			if errno := d.Set(fmt.Sprint(i), ""); errno == abi.Limit {
				return i
			}
		}
	}
	kv := plugin.NewKV()
	d := kv.Begin()
	if n := full(kv, d); n != plugin.MaxKVKeys {
		t.Errorf("took %d keys", n)
	}
	d.Delete("0")
	if d.Set("one", "") != abi.OK || d.Set("two", "") != abi.Limit {
		t.Error("a key that was deleted makes room for one, not two")
	}
	late := kv.Begin()
	if errno := late.Set("late", "x"); errno != abi.OK {
		t.Errorf("before the other is committed: %v", errno)
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := late.Commit(); !errors.Is(err, abi.Limit) {
		t.Errorf("beyond the limit: %v", err)
	}
	wantKV(t, kv.Begin(), "late", "", abi.NotFound)

	kv = plugin.NewKV()
	d = kv.Begin()
	value := strings.Repeat("v", plugin.MaxKVValue-1)
	for i := range 16 {
		if errno := d.Set(string(rune('a'+i)), value); errno != abi.OK {
			t.Fatal(i, errno)
		}
	}
	if d.Set("q", "") != abi.Limit || d.Set("a", value+"x") != abi.Limit || d.Set("a", "") != abi.OK || d.Set("q", "") != abi.OK {
		t.Error("bytes are not counted")
	}
}

// TestKVTogether lets calls write at a time; run with -race.
func TestKVTogether(t *testing.T) {
	kv := plugin.NewKV()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				d := kv.Begin()
				d.Set(fmt.Sprint(g), fmt.Sprint(i))
				if err := d.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for g := range 8 {
		wantKV(t, kv.Begin(), fmt.Sprint(g), "199", abi.OK)
	}
}

func TestMetrics(t *testing.T) {
	m := plugin.NewMetrics()
	update := func(want abi.Errno, kind int32, name string, v int64) {
		t.Helper()
		if got := m.Update(kind, name, v); got != want {
			t.Errorf("%d %s %d: got %v, want %v", kind, name, v, got, want)
		}
	}
	update(abi.OK, abi.MetricAdd, `calls_total{qos="Burstable",ns="a b"}`, 2)
	update(abi.OK, abi.MetricAdd, `calls_total{qos="Burstable",ns="a b"}`, 3)
	update(abi.OK, abi.MetricSet, "_gauge", 7)
	update(abi.OK, abi.MetricSet, "_gauge", -1)
	update(abi.OK, abi.MetricObserve, "took", 5)
	update(abi.OK, abi.MetricObserve, "took", -5)
	update(abi.OK, abi.MetricObserve, "took", math.MaxInt64)
	update(abi.Invalid, abi.MetricAdd, "calls", -1)
	update(abi.Invalid, 3, "x", 1)
	update(abi.Invalid, -1, "x", 1)
	for _, name := range []string{"", "9", "A", "a-b", "a{}", `a{b="c"`, `a{b="c",}`, `a{b="c\"}`, "a{b=\"\n\"}", `a{B="c"}`, "a ", `a{b=c}`} {
		update(abi.Invalid, abi.MetricAdd, name, 1)
	}
	update(abi.TooLarge, abi.MetricAdd, strings.Repeat("a", plugin.MaxSeriesName+1), 1)
	all := m.All()
	if len(all) != 3 || all[0].Name != "_gauge" || all[0].Value != -1 || all[1].Value != 5 {
		t.Errorf("got %+v", all)
	}
	if took := all[2]; took.Count != 3 || took.Value != math.MaxInt64 || took.Buckets[0] != 1 || took.Buckets[3] != 1 || took.Buckets[63] != 1 {
		t.Errorf("got %+v", took)
	}
	for i := range plugin.MaxSeries - 3 {
		update(abi.OK, abi.MetricAdd, fmt.Sprintf(`n{i="%d"}`, i), 1)
	}
	update(abi.OK, abi.MetricSet, "_gauge", 1)
}

// What a commit costs follows what was written, not what there is.
func TestKVCommitCost(t *testing.T) {
	cost := func(keys int) float64 {
		kv := plugin.NewKV()
		for i := range keys {
			d := kv.Begin()
			if d.Set(fmt.Sprint("key", i), "v") != abi.OK || d.Commit() != nil {
				t.Fatal("no room")
			}
		}
		return testing.AllocsPerRun(100, func() {
			d := kv.Begin()
			if d.Set("key0", "w") != abi.OK || d.Commit() != nil {
				t.Error("no room")
			}
		})
	}
	if one, many := cost(1), cost(plugin.MaxKVKeys); many > one {
		t.Errorf("%v allocations among %d keys, %v with one", many, plugin.MaxKVKeys, one)
	}
}
