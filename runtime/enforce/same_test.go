package enforce_test

import (
	"strconv"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
)

// weighted is a kernel with one value of two names: a weight, and a nice that shows it rounded.
type weighted struct {
	plain
	weight int
}

func (k *weighted) held() enforce.Held {
	return enforce.Held{"cpu.weight": strconv.Itoa(k.weight), "cpu.weight.nice": strconv.Itoa((100 - k.weight) / 10)}
}

func (k *weighted) Exact(file, _ string) string {
	if file == "cpu.weight.nice" {
		return strconv.Itoa(k.weight)
	}
	return ""
}

// carry does what package intercept does.
func (k *weighted) carry(l *enforce.Ledger) {
	for range 2 {
		held := enforce.Held{}
		for _, file := range l.Record(c1).Files() {
			held[file] = k.held()[file]
		}
		var done []enforce.Done
		for _, w := range l.Record(c1).Begin(held, enforce.Scan, k) {
			n, _ := strconv.Atoi(w.Value)
			if k.weight = n; w.File == "cpu.weight.nice" {
				k.weight = 100 - 10*n
			}
			if w.Kind == enforce.Undo && w.Exact != "" {
				k.weight, _ = strconv.Atoi(w.Exact)
			}
			done = append(done, enforce.Done{Write: w, Read: k.held()[w.File]})
		}
		l.Record(c1).End(done)
	}
}

// The last wish of a plugin for a value of two names holds, by whichever name. kubelet's value
// comes back exactly.
func TestOneValueOfTwoNames(t *testing.T) {
	for name, order := range map[string][]enforce.Asked{
		"nice last":       {wish("10-a", "cpu.weight", "200"), wish("10-a", "cpu.weight.nice", "5")},
		"weight last":     {wish("10-a", "cpu.weight.nice", "5"), wish("10-a", "cpu.weight", "200")},
		"there and back":  {wish("10-a", "cpu.weight.nice", "5"), wish("10-a", "cpu.weight", "200"), wish("10-a", "cpu.weight.nice", "7")},
		"nice by itself":  {wish("10-a", "cpu.weight.nice", "5")},
		"the same weight": {wish("10-a", "cpu.weight.nice", "5"), wish("10-a", "cpu.weight", "59")},
	} {
		for _, atOnce := range []bool{false, true} {
			l, k := enforce.NewLedger(), &weighted{weight: 59}
			if atOnce {
				l.Record(c1).Ask(order...)
				k.carry(l)
			} else {
				for _, a := range order {
					l.Record(c1).Ask(a)
					k.carry(l)
				}
			}
			last := order[len(order)-1]
			file, _ := last.Target.File()
			before := k.weight
			k.carry(l)
			if got := k.held()[file]; got != last.Value || k.weight != before {
				t.Errorf("%s: %s is %s, want %s; the weight was %d and is %d", name, file, got, last.Value, before, k.weight)
			}
			l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
			if k.carry(l); k.weight != 59 || l.Record(c1).Has() {
				t.Errorf("%s: without the plugin the weight is %d, want 59; left is %+v", name, k.weight, l.Record(c1).Values())
			}
		}
	}
}

// kubelet's next value may be another one that the file shows in the same way.
func TestExactValueOfALaterUpdate(t *testing.T) {
	l, k := enforce.NewLedger(), &weighted{weight: 59}
	l.Record(c1).Ask(wish("10-a", "cpu.weight.nice", "5"))
	k.carry(l)
	k.weight = 58
	k.carry(l)
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if k.carry(l); k.weight != 58 {
		t.Errorf("the weight is %d, want 58", k.weight)
	}
}

// A plugin's last value may be one that the file shows like kubelet's.
func TestExactValueAfterAPluginSetBackWhatItRead(t *testing.T) {
	l, k := enforce.NewLedger(), &weighted{weight: 59}
	before := k.held()["cpu.weight.nice"]
	for _, nice := range []string{"5", before} {
		l.Record(c1).Ask(wish("10-a", "cpu.weight.nice", nice))
		k.carry(l)
	}
	if k.weight == 59 || k.held()["cpu.weight.nice"] != before {
		t.Fatalf("the plugin has set the weight %d, want another one than 59 that is shown as %s", k.weight, before)
	}
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	if k.carry(l); k.weight != 59 || l.Record(c1).Has() {
		t.Errorf("the weight is %d, want 59; left is %+v", k.weight, l.Record(c1).Values())
	}
}

// A wish that is taken back gives the other name its wish again.
func TestRevertOfAnotherName(t *testing.T) {
	l := enforce.NewLedger()
	l.Record(c1).Ask(wish("10-a", "cpu.weight", "200"))
	revert := l.Record(c1).Ask(wish("10-a", "cpu.weight.nice", "5"))
	if _, ok := l.Record(c1).Owner(enforce.File("cpu.weight")); ok {
		t.Error("the plugin wants cpu.weight, too")
	}
	revert()
	if w, _ := l.Record(c1).Owner(enforce.File("cpu.weight")); w.Value != "200" || len(l.Record(c1).Values()) != 1 {
		t.Errorf("the records are %+v", l.Record(c1).Values())
	}
}
