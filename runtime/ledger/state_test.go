package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// openState is a start of the proxy.
func openState(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), dir, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Values of objects whose names JSON or a file's name cannot have as they are survive a restart.
func TestStateOfOddNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *ledger.Ledger { return openState(t, dir) }
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

// TestIgnoredFiles: it stays known which pods' files were ignored, and why, also when the file is replaced and
// after a restart.
func TestIgnoredFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *ledger.Ledger { return openState(t, dir) }
	if all := open().IgnoredFiles(); len(all) > 0 {
		t.Errorf("of an empty directory %v were ignored", all)
	}
	odd := ledger.ID{Pod: "No UID of Kubernetes"}
	open().Ask(odd, wish("10-a", "cpu.idle", "1"))
	files, err := filepath.Glob(dir + "/x_*.json")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for name, text := range map[string]string{dir + "/u1.json": `{"version":`, dir + "/u2.json": `{"version":2,"pod":"u2"}`, files[0]: "[]"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, l *ledger.Ledger) {
		t.Helper()
		for uid, want := range map[string]string{"u1": "unexpected end of JSON input", "u2": "its version is 2, and this version of wasmproxy reads 1", odd.Pod: "cannot unmarshal array"} {
			file, reason := l.Ignored(uid)
			if reason == nil || !strings.Contains(reason.Error(), want) {
				t.Errorf("%s: file %s of pod %s was ignored: %v; want %s", when, file, uid, reason, want)
			}
		}
		if file, reason := l.Ignored("u3"); file != "u3.json" || reason != nil || len(l.IgnoredFiles()) != 3 {
			t.Errorf("%s: file %s was ignored: %v; all are %v", when, file, reason, l.IgnoredFiles())
		}
	}
	l := open()
	check("at the start", l)
	for _, id := range []ledger.ID{{Pod: "u1"}, {Pod: "u2", Container: "c1"}, {Pod: "u3"}, odd} {
		l.Ask(id, wish("10-a", "cpu.idle", "1"))
	}
	check("after a change", l)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after another process", l)
	l = open()
	check("after a restart", l)
	if objects, _ := l.Len(); objects != 4 {
		t.Errorf("after a restart there are %d objects, want 4", objects)
	}
	if err := os.WriteFile(dir+"/u4.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l = open()
	gone := func(string) bool { return false }
	l.Vacate(ledger.ID{Pod: "u1"}, func(ledger.ID) bool { return false }, gone)
	if _, reason := l.Ignored("u1"); reason != nil {
		t.Errorf("the pod has ended, and its file was ignored: %v", reason)
	}
	l.Retain(func(id ledger.ID) bool { return id.Pod != "u2" }, gone)
	if _, reason := l.Ignored("u4"); reason == nil {
		t.Error("the pod is there, and its file was not ignored")
	}
	l.Retain(func(ledger.ID) bool { return false }, gone)
	if _, reason := l.Ignored("u4"); reason != nil {
		t.Errorf("the pod is gone, and its file was ignored: %v", reason)
	}
}
