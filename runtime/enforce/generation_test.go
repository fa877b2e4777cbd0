package enforce_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// A wish keeps the generation that asked for it over a restart, until another one asks.
func TestGenerationsAreSaved(t *testing.T) {
	dir := t.TempDir()
	again := func() *enforce.Ledger {
		l, err := enforce.OpenLedger(t.Context(), dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	for _, generation := range []string{"1", "2"} {
		asked := wish("a", "memory.high", "1")
		asked.Generation = generation
		again().Record(c1).Ask(asked)
		found := 0
		again().Wishes(func(id enforce.ID, target enforce.Target, w enforce.Wish) {
			if found++; id != c1 || target != asked.Target || w.Generation != generation {
				t.Errorf("%v has a wish for %s of generation %q, want %q", id, target, w.Generation, generation)
			}
		})
		if found != 1 {
			t.Errorf("there are %d wishes", found)
		}
	}
}
