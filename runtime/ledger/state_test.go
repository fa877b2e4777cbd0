package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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

// TestReloadWithoutDescriptors: records that cannot be read again stay as they are in memory, and
// changes are saved.
func TestReloadWithoutDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, err := ledger.Open(t.Context(), dir, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id := ledger.ID{Pod: "u1"}
	l.Ask(id, wish("10-a", "cpu.idle", "1"))
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	failed := l.Reload(t.Context())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if failed == nil {
		t.Error("the directory was read without a descriptor")
	}
	if w, ok := l.Owner(id, ledger.File("cpu.idle")); !ok || w.Value != "1" {
		t.Errorf("the record is lost: %+v, %v", w, ok)
	}
	l.Ask(ledger.ID{Pod: "u2"}, wish("10-a", "cpu.idle", "1"))
	if _, err := os.Stat(dir + "/u2.json"); err != nil {
		t.Errorf("a change is not saved: %v", err)
	}
}

// TestReleaseSavesAgain: records that could not be saved are not left to another process, but saved
// as soon as that is possible.
func TestReleaseSavesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, err := ledger.Open(t.Context(), dir, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id, inTheWay := ledger.ID{Pod: "u1"}, dir+"/u1.json.new"
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Ask(id, wish("10-a", "cpu.idle", "1"))
	if err := l.Release(); err == nil {
		t.Error("a record that is not saved is left to another process")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Errorf("the record is not saved again: %v", err)
	}
	if err := l.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w, ok := l.Owner(id, ledger.File("cpu.idle")); !ok || w.Value != "1" {
		t.Errorf("the record is lost: %+v, %v", w, ok)
	}
}
