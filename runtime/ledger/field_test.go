package ledger_test

import (
	"errors"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// That the runtime refuses a field for another reason is news. Another number in the error is not: some
// runtimes put the time in it, or the memory in use.
func TestReasonOfAFieldThatIsNotReset(t *testing.T) {
	l, limit := ledger.New(), ledger.Field("memory_limit_in_bytes")
	l.Updated(c1, ledger.Update{
		Asked: []ledger.Asked{{Target: limit, Wish: ledger.Wish{Plugin: "10-a", Value: "8192"}}},
		Sent:  map[ledger.Target]string{limit: "8192"},
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
		if news := l.NotReset(c1, []ledger.Target{limit}, errors.New(step.reason)); news != step.news {
			t.Errorf("%q is news: %v, want %v", step.reason, news, step.news)
		}
	}
}
