package enforce_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// openState is a start of the proxy.
func openState(t *testing.T, dir string) *enforce.Ledger {
	t.Helper()
	l, err := enforce.OpenLedger(t.Context(), dir, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A wish of an earlier process ends with kubelet's next value also if the clock was set back since.
func TestClockIsSetBack(t *testing.T) {
	dir, quota, first := filepath.Join(t.TempDir(), "state"), enforce.Field("cpu_quota"), "100"
	ahead := enforce.Wish{Plugin: "10-a", Value: "200", At: time.Now().Add(time.Hour)}
	before := openState(t, dir)
	before.Record(c1).Ask(enforce.Asked{Target: quota, Wish: ahead, Has: &first})
	before.Close()
	l, sent := openState(t, dir), map[enforce.Target]string{quota: "300"}
	l.Record(c1).Updated(enforce.Update{Kubelet: sent, Sent: sent, At: time.Now()})
	if w, ok := l.Record(c1).Owner(quota); ok {
		t.Errorf("after a resize of kubelet's the wish %+v is left", w)
	}
}

// Values of objects whose names JSON cannot have as they are survive a restart.
func TestStateOfOddNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *enforce.Ledger { return openState(t, dir) }
	ids := []enforce.ID{{Pod: `a"b\/../c`}, {Pod: `a"b\/../c`, Container: "c\n\"\u2028"}, {Pod: "u1", Container: "\\"}, {Pod: "u2"}}
	l := open()
	for _, id := range ids {
		l.Record(id).Ask(wish("10-a", "cpu.idle", "1"))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	for _, id := range ids {
		if w, ok := l.Record(id).Owner(enforce.File("cpu.idle")); !ok || w.Plugin != "10-a" || w.Value != "1" {
			t.Errorf("%q: %+v, %v", id, w, ok)
		}
	}
	if objects, _ := l.Len(); objects != len(ids) {
		t.Errorf("%d objects, want %d", objects, len(ids))
	}
}

// TestIgnoredLines: what a journal has beside a line that cannot be read is read, and an event tells of that. It stays known of which pods
// lines were ignored, and why, also when the journal is written anew and after a restart, until the pod ends.
func TestIgnoredLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	id := enforce.ID{Pod: "u0", Container: "c0"}
	openState(t, dir).Record(id).Ask(wish("10-a", "cpu.idle", "1"))
	add(t, dir, `{"version":2,"pod":"u2"}
{"version":1,"pod":"u3","values":[]}
{"version":2,"pod":"u4"}
{"version":1,"pod":"u5","val`)
	var events observe.Recorder
	l, err := enforce.OpenLedger(t.Context(), dir, &events)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range observe.All[*observe.StateIgnored](events.Take()) {
		told = append(told, e.File+": "+e.Err.Error())
	}
	want := []string{
		"journal: line 2: its version is 2, and this version of wasmproxy reads 1", "journal: 2 more lines are ignored",
		"journal: line 5 has no end: the proxy was killed while it wrote it",
	}
	if !slices.Equal(told, want) {
		t.Errorf("the events are %q, want %q", told, want)
	}
	check := func(when string, l *enforce.Ledger) {
		t.Helper()
		for uid, want := range map[string]string{"u2": "line 2: its version is 2", "u3": "line 3: json: cannot unmarshal", "u4": "line 4: "} {
			if reason := l.Ignored(uid); reason == nil || !strings.Contains(reason.Error(), want) {
				t.Errorf("%s: of pod %s was ignored: %v; want %s", when, uid, reason, want)
			}
		}
		if all := l.IgnoredPods(); len(all) != 3 || l.Ignored("u0") != nil || l.Ignored("u5") != nil || !l.Record(id).Has() {
			t.Errorf("%s: of these pods lines were ignored: %v; the records are those of %v", when, all, l.Objects())
		}
	}
	check("at the start", l)
	l.Record(enforce.ID{Pod: "u2", Container: "c1"}).Ask(wish("10-a", "cpu.idle", "1"))
	check("after a change", l)
	if l = openState(t, dir); !l.Record(enforce.ID{Pod: "u2", Container: "c1"}).Has() {
		t.Error("what was changed after the start is lost")
	}
	check("after a restart", l)
	gone := func(string) bool { return false }
	l.Record(enforce.ID{Pod: "u2"}).Vacate(func(enforce.ID) bool { return false }, gone)
	l.Retain(func(id enforce.ID) bool { return id.Pod != "u3" }, gone)
	if all := l.IgnoredPods(); len(all) != 1 || all["u4"] == nil {
		t.Errorf("pods have ended, and of these lines were ignored: %v", all)
	}
}

// TestLineWithoutAPod: of a line that does not say of which pod it is, any pod may have been.
func TestLineWithoutAPod(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	openState(t, dir)
	add(t, dir, "\x00\x00\n")
	for range 2 {
		l := openState(t, dir)
		if reason := fmt.Sprint(l.Ignored("u1")); !strings.HasPrefix(reason, "line 1: invalid character") || len(l.IgnoredPods()) != 1 {
			t.Errorf("what was ignored of a pod is %v", reason)
		}
		l.Record(enforce.ID{Pod: "u1"}).Ask(wish("10-a", "cpu.idle", "1"))
		l.Retain(func(enforce.ID) bool { return false }, func(string) bool { return true })
		if len(l.IgnoredPods()) != 1 {
			t.Error("it is not known any more that a line was ignored")
		}
	}
}

// add adds a text to the journal in a state directory.
func add(t *testing.T, dir, text string) {
	t.Helper()
	f, err := os.OpenFile(dir+"/journal", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestJournalStaysShort: the journal has a bounded length, whatever number of changes there are, and all that is known.
func TestJournalStaysShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	stays := enforce.ID{Pod: "stays"}
	l.Record(stays).Ask(wish("10-a", "cpu.idle", "1"))
	longest := int64(0)
	for n := range 5000 {
		id := enforce.ID{Pod: "u1", Container: fmt.Sprint(n)}
		l.Record(id).Ask(wish("10-a", "cpu.idle", "1"))
		if n%2 == 0 {
			l.Record(id).Remove()
		} else if n%10 == 9 {
			l.Record(enforce.ID{Pod: "u1"}).Remove()
		}
		info, err := os.Stat(dir + "/journal")
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, info.Size())
	}
	if longest < 64<<10 || longest > 80<<10 {
		t.Errorf("the journal had up to %d bytes", longest)
	}
	if got := openState(t, dir); fmt.Sprint(got.Objects()) != fmt.Sprint(l.Objects()) || !got.Record(stays).Has() {
		t.Errorf("the records that are saved are those of %v, want %v", got.Objects(), l.Objects())
	}
}

// TestJournalIsRemoved: somebody removes the journal, and then the directory. The next change makes another journal. That there is no
// directory is told once.
func TestJournalIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var events observe.Recorder
	l, err := enforce.OpenLedger(t.Context(), dir, &events)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ask := func(pod string) { t.Helper(); l.Record(enforce.ID{Pod: pod}).Ask(wish("10-a", "cpu.idle", "1")) }
	ask("u1")
	if err := os.Remove(dir + "/journal"); err != nil {
		t.Fatal(err)
	}
	ask("u2")
	l.Keep()
	if got := openState(t, dir).Objects(); len(got) != 2 || !l.Saved() {
		t.Errorf("the records that are saved are those of %v", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ask("u3")
	l.Keep()
	ask("u4")
	l.Keep()
	if failures := observe.All[*observe.StateNotSaved](events.Take()); len(failures) != 1 || l.Saved() {
		t.Errorf("%d failures are told, and all is saved: %v", len(failures), l.Saved())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Keep()
	if got := openState(t, dir).Objects(); len(got) != 4 || !l.Saved() {
		t.Errorf("the records that are saved are those of %v", got)
	}
}

// TestPartOfALineIsWritten: the file system is full in the middle of a line. What comes later is not added to that.
func TestPartOfALineIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	// The limit is above the length of what go test logs of the process in a file.
	l.Record(enforce.ID{Pod: "u1"}).Ask(wish("10-a", "cpu.idle", strings.Repeat("1", 1<<20)))
	info, err := os.Stat(dir + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	limitFiles(t, uint64(info.Size())+10, func() { l.Record(enforce.ID{Pod: "u2"}).Ask(wish("10-a", "cpu.idle", "1")) })
	if l.Saved() {
		t.Error("a part of a change counts as saved")
	}
	if after, err := os.Stat(dir + "/journal"); err != nil || after.Size() != info.Size() {
		t.Errorf("a part of a line stays: %v", err)
	}
	if _, err := os.Stat(dir + "/journal.new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of another journal takes what space is left: %v", err)
	}
	l.Record(enforce.ID{Pod: "u3"}).Ask(wish("10-a", "cpu.idle", "1"))
	var events observe.Recorder
	again, err := enforce.OpenLedger(t.Context(), dir, &events)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := again.Objects(); len(got) != 3 || len(events.Take()) > 0 || !l.Saved() {
		t.Errorf("the records that are saved are those of %v", got)
	}
}

// TestReadOnly: on a file system that has become read-only the records that are there count, and changes are not saved.
func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	l.Record(enforce.ID{Pod: "u1"}).Ask(wish("10-a", "cpu.idle", "1"))
	l.Close()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		if os.Getenv("CI") == "true" || os.Getuid() == 0 {
			t.Fatal(err)
		}
		t.Skip("root is needed to mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	again := openState(t, dir)
	if got := again.Objects(); len(got) != 1 || !again.Saved() {
		t.Errorf("the records that are saved are those of %v", got)
	}
	again.Record(enforce.ID{Pod: "u2"}).Ask(wish("10-a", "cpu.idle", "1"))
	if again.Saved() {
		t.Error("a change counts as saved")
	}
}

// limitFiles runs f while no file of the process can be longer than so many bytes.
func limitFiles(t *testing.T, size uint64, f func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
}

// TestNoRecordIsSavedAfterAClose: what a process does at its end must not replace the journal of the next one.
func TestNoRecordIsSavedAfterAClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	l.Record(enforce.ID{Pod: "u1"}).Ask(wish("10-a", "cpu.idle", "1"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Record(enforce.ID{Pod: "u2"}).Ask(wish("10-a", "cpu.idle", "1"))
	if got := openState(t, dir).Objects(); len(got) != 1 {
		t.Errorf("the records that are saved are those of %v", got)
	}
}
