package enforce_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
)

// A plugin that withdraws its wish leaves those of others in their order, and gets it back in its place if that is taken back.
func TestWithdrawnWish(t *testing.T) {
	l, id := enforce.NewLedger(), enforce.ID{Pod: "u", Container: "c"}
	idle := enforce.File("cpu.idle")
	ask := func(plugin string) func() {
		return l.Record(id).Ask(enforce.Asked{Target: idle, Wish: enforce.Wish{Plugin: plugin, Hook: abi.Tick, Value: "1", At: time.Now()}})
	}
	withdraw := func(plugin string) func() {
		return l.Record(id).Ask(enforce.Asked{Target: idle, Ends: true, Wish: enforce.Wish{Plugin: plugin, Hook: abi.Tick, At: time.Now()}})
	}
	want := func(when, order string) {
		t.Helper()
		var all []string
		for _, w := range l.Record(id).Values()[idle].Wishes {
			all = append(all, w.Plugin)
		}
		if got := strings.Join(all, " "); got != order {
			t.Errorf("%s: the wishes are of %q, want %q", when, got, order)
		}
	}
	for _, plugin := range []string{"10-a", "20-b", "30-c"} {
		ask(plugin)
	}
	revert := withdraw("20-b")
	want("withdrawn", "10-a 30-c")
	if _, ok := l.Record(id).Owner(idle, func(plugin string) bool { return plugin == "20-b" }); ok {
		t.Error("what was withdrawn has an owner")
	}
	revert()
	want("taken back", "10-a 20-b 30-c")
	revert = withdraw("20-b")
	ask("20-b")
	revert()
	want("asked again before it was taken back", "10-a 30-c 20-b")
	withdraw("40-other")
	withdraw("10-a")
	withdraw("30-c")
	want("all but one", "20-b")
	revert = withdraw("20-b")
	if l.Record(id).Has() {
		t.Errorf("a record stays of %v", l.Record(id).Values())
	}
	revert()
	want("the last one taken back", "20-b")
}

// An update that was under way when the plugin asked again does not end the new wish.
func TestWithdrawnWishIsAskedForAgain(t *testing.T) {
	l, id := enforce.NewLedger(), enforce.ID{Pod: "u", Container: "c"}
	quota, kubelet := enforce.Field("cpu_quota"), "50000"
	wish := func(value string) enforce.Asked {
		return enforce.Asked{Target: quota, Has: &kubelet, Wish: enforce.Wish{Plugin: "10-a", Value: value, At: time.Now()}}
	}
	l.Record(id).Ask(wish("20000"))
	ends := wish("")
	ends.Ends = true
	l.Record(id).Ask(ends)
	l.Record(id).Ask(wish("30000"))
	l.Record(id).Updated(enforce.Update{Kubelet: map[enforce.Target]string{quota: kubelet}, Asked: []enforce.Asked{ends}, At: ends.At, Sent: map[enforce.Target]string{quota: kubelet}})
	if w, ok := l.Record(id).Owner(quota); !ok || w.Value != "30000" {
		t.Errorf("the wish is %v", w)
	}
	if due := l.Record(id).Resets(); due[quota] != "30000" {
		t.Errorf("due are %v", due)
	}
}
