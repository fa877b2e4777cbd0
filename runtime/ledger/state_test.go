package ledger_test

import (
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Values of objects whose names JSON or a file's name cannot have as they are survive a restart.
func TestStateOfOddNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *ledger.Ledger {
		l, err := ledger.Open(t.Context(), dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	ids := []ledger.ID{{Pod: `a"b\/../c`}, {Pod: `a"b\/../c`, Container: "c\n\"\u2028"}, {Pod: "u1", Container: "\\"}, {Pod: "u2"}}
	l := open()
	for _, id := range ids {
		l.Ask(id, wish("10-a", "cpu.idle", "1"))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	for _, id := range ids {
		if w, ok := l.Owner(id, ledger.File("cpu.idle")); !ok || w.Plugin != "10-a" || w.Value != "1" {
			t.Errorf("%q: %+v, %v", id, w, ok)
		}
	}
	if objects, _ := l.Len(); objects != len(ids) {
		t.Errorf("%d objects, want %d", objects, len(ids))
	}
}
