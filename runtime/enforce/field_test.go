package enforce_test

import (
	"errors"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
)

// TestWishThatEndsWhileItIsSent ends the wish before the runtime has answered: it may have taken the value, also if the
// proxy is killed then, and is to be sent kubelet's again.
func TestWishThatEndsWhileItIsSent(t *testing.T) {
	limit, kubelet := enforce.Field("memory_limit_in_bytes"), "4096"
	wish := enforce.Asked{Target: limit, Wish: enforce.Wish{Plugin: "10-a", Value: "8192"}, Has: &kubelet}
	for name, send := range map[string]func(*enforce.Ledger){
		"in kubelet's update": func(l *enforce.Ledger) {
			sent := wish
			sent.Sent = true
			l.Record(c1).Ask(sent)
		},
		"in the proxy's own": func(l *enforce.Ledger) {
			l.Record(c1).Ask(wish)
			l.Record(c1).Sending(map[enforce.Target]string{limit: "8192"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openState(t, dir)
			send(l)
			l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
			l = openState(t, dir)
			if due := l.Record(c1).Resets(); due[limit] != kubelet {
				t.Errorf("due is %v", due)
			}
			l.Record(c1).Updated(enforce.Update{Sent: map[enforce.Target]string{limit: kubelet}})
			if !l.Empty() {
				t.Errorf("after that there is a record: %v", l.Record(c1).Values())
			}
		})
	}
}

// TestRefusedUpdateLeavesNoRecord takes back what was asked for in an update that the runtime has refused.
func TestRefusedUpdateLeavesNoRecord(t *testing.T) {
	l, limit, kubelet := enforce.NewLedger(), enforce.Field("memory_limit_in_bytes"), "4096"
	revert := l.Record(c1).Ask(enforce.Asked{Target: limit, Wish: enforce.Wish{Plugin: "10-a", Value: "8192"}, Has: &kubelet, Sent: true})
	if revert(); !l.Empty() {
		t.Errorf("there is a record: %v", l.Record(c1).Values())
	}
}

// That the runtime refuses a field for another reason is news. Another number in the error is not: some
// runtimes put the time in it, or the memory in use.
func TestReasonOfAFieldThatIsNotReset(t *testing.T) {
	l, limit := enforce.NewLedger(), enforce.Field("memory_limit_in_bytes")
	l.Record(c1).Updated(enforce.Update{
		Asked: []enforce.Asked{{Target: limit, Wish: enforce.Wish{Plugin: "10-a", Value: "8192"}}},
		Sent:  map[enforce.Target]string{limit: "8192"},
	})
	for _, step := range []struct {
		reason string
		news   bool
	}{
		{"42", true},
		{"time=09:59:07: usage of 4096 is above the limit", true},
		{"time=09:59:07: usage of 4096 is above the limit", false},
		{"time=10:00:07: usage of 12288 is above the limit", false},
		{"time=10:00:37: no such unit", true},
		{"time=10:01:07: usage of 4096 is above the limit", true},
	} {
		if news := l.Record(c1).NotReset([]enforce.Target{limit}, errors.New(step.reason)); news != step.news {
			t.Errorf("%q is news: %v, want %v", step.reason, news, step.news)
		}
	}
}
