package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

var web = observe.Object{Namespace: "shop", Pod: "web-0", PodID: "6d2f", Container: "main", ContainerID: "91ac"}

// A line of each event, as it is written.
func TestLines(t *testing.T) {
	failed := errors.New("no space")
	for want, e := range map[string]observe.Event{
		`"event":"changed",ABOUT,"plugin":"a","hook":"PreCreateContainer","other_name":"x","other_id":"1","field":"f","old":"1","new":"2"`: &observe.FieldChanged{
			Plugin: "a", Hook: abi.PreCreateContainer, Object: web, OtherName: "x", OtherID: "1", Field: "f", Previous: "1", Value: "2"},
		`"event":"refused",ABOUT,"plugin":"a","hook":"PreExec","code":"PermissionDenied","reason":"not \"allowed\""`: &observe.CallRefused{
			Plugin: "a", Hook: abi.PreExec, Object: web, Code: "PermissionDenied", Reason: `not "allowed"`},
		`"event":"refused",ABOUT,"plugin":"b","hook":"PreExec","code":"Aborted","reason":"\u009b31m \u202etxt.exe \u007f\u2028\n a < b"`: &observe.CallRefused{
			Plugin: "b", Hook: abi.PreExec, Object: web, Code: "Aborted", Reason: "\u009b31m \u202etxt.exe \u007f\u2028\n a < b"},
		`"event":"exempted",ABOUT,"plugin":"a","hook":"PreCreateContainer","reason":"no space"`: &observe.CallExempted{
			Plugin: "a", Hook: abi.PreCreateContainer, Object: web, Reason: "no space"},
		`"event":"conflict",ABOUT,"plugin":"b","hook":"PreCreateContainer","field":"f","first":"a"`: &observe.Conflict{
			Plugin: "b", First: "a", Hook: abi.PreCreateContainer, Object: web, Field: "f"},
		`"event":"update_failed",ABOUT,"plugin":"a","hook":"PreCreateContainer","field":"f","reason":"no space"`: &observe.DeferredUpdateFailed{
			Plugin: "a", Hook: abi.PreCreateContainer, Object: web, Field: "f", Err: failed},
		`"event":"cgroup_written",ABOUT,"plugin":"a","hook":"PreCreateContainer","field":"cpu.idle","new":"1"`: &observe.CgroupFileWritten{
			Plugin: "a", Hook: abi.PreCreateContainer, Object: web, File: "cpu.idle", Value: "1"},
		`"event":"cgroup_failed",ABOUT,"field":"cpu.idle","new":"1","reason":"no space"`:      &observe.CgroupFileFailed{Object: web, File: "cpu.idle", Value: "1", Err: failed},
		`"event":"cgroup_repaired",ABOUT,"plugin":"a","field":"cpu.idle","old":"0","new":"1"`: &observe.CgroupFileRepaired{Plugin: "a", Object: web, File: "cpu.idle", Value: "1", Found: "0"},
		`"event":"cgroup_left",ABOUT,"plugin":"a","field":"cpu.idle","old":"1","new":"0"`:     &observe.CgroupFileFought{Plugin: "a", Object: web, File: "cpu.idle", Value: "1", Found: "0"},
		`"event":"failed",ABOUT,"plugin":"a","hook":"PreExec","reason":"no space"`:            &observe.PluginFailed{Plugin: "a", Hook: abi.PreExec, Object: web, Err: failed},
		`"event":"load_failed","plugin":"a","reason":"no space"`:                              &observe.PluginRejected{Plugin: "a", Err: failed},
		`"event":"removed","plugin":"a"`:                                                      &observe.PluginRemoved{Plugin: "a"},
		`"event":"disabled","plugin":"a"`:                                                     &observe.PluginRemoved{Plugin: "a", Disabled: true},
		`"event":"loaded","plugin":"a","settings_digest":"cd","new":"1.0.0"`:                  &observe.PluginLoaded{Plugin: "a", Version: "1.0.0", Digest: "ab", SettingsDigest: "cd"},
		`"event":"replaced","plugin":"a","old":"1.0.0","new":"1.1.0"`:                         &observe.PluginReplaced{PluginLoaded: observe.PluginLoaded{Plugin: "a", Version: "1.1.0"}, Previous: "1.0.0"},
		`"event":"settings_changed","plugin":"a","settings_digest":"cd"`:                      &observe.PluginSettingsChanged{Plugin: "a", SettingsDigest: "cd"},
		`"event":"bypass_on","reason":"INC 4711"`:                                             &observe.BypassOn{Reason: "INC 4711"},
		`"event":"bypass_off"`: &observe.BypassOff{},
		`"event":"cgroup_undone",ABOUT,"field":"cpu.idle","new":"0"`: &observe.CgroupFileUndone{Object: web, File: "cpu.idle", Value: "0"},
	} {
		want = `{"time":"2026-11-22T09:00:00Z",` + strings.Replace(want, "ABOUT", `"namespace":"shop","pod":"web-0","pod_id":"6d2f","container":"main","container_id":"91ac"`, 1) + "}\n"
		if got := (entry{at: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), line: lineOf(e)}).text(0); string(got) != want {
			t.Errorf("%T:\n%swant\n%s", e, got, want)
		}
	}
	if lineOf(&observe.CallFinished{}) != nil {
		t.Error("a call is audited")
	}
}

// The line in docs/operations.md is what is written.
func TestLineInTheDocuments(t *testing.T) {
	want, err := os.ReadFile("../../../cmd/wasmproxy/testdata/audit.json")
	if err != nil {
		t.Fatal(err)
	}
	got := entry{at: time.Date(2026, 11, 22, 9, 0, 0, 123456789, time.UTC), trace: "4bf92f3577b34da6a3ce929d0e0e4736", line: lineOf(&observe.FieldChanged{
		Plugin: "10-quota", Hook: abi.PreCreateContainer, Object: web, Field: "container.resources.cpu_quota", Previous: "100000", Value: "200000",
	}), digest: "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476"}.text(0)
	if !bytes.Equal(got, want) {
		t.Errorf("the document has\n%sbut this is written\n%s", want, got)
	}
}

// read is what tests want to know of a line.
type read struct {
	Event   string `json:"event"`
	TraceID string `json:"trace_id"`
	Digest  string `json:"digest"`
}

// written are the lines of a file, each of which must be whole.
func written(t *testing.T, file string) (all []read) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(text)) {
		var l read
		if err := json.Unmarshal([]byte(text), &l); err != nil || !strings.HasSuffix(text, "\n") {
			t.Fatalf("%s has the line %q: %v", file, text, err)
		}
		all = append(all, l)
	}
	return all
}

// The id of the trace comes from the caller's traceparent, though no traces are made.
func TestTraceID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.json")
	l := New(Options{To: file, MaxBytes: 1 << 20, Backups: 1, Observer: observe.Discard()})
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"))
	l.Observe(ctx, &observe.FieldChanged{Plugin: "a"})
	l.Observe(t.Context(), &observe.FieldChanged{Plugin: "a"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all := written(t, file)
	if len(all) != 2 || all[0].TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || all[1].TraceID != "" {
		t.Errorf("the lines are %+v", all)
	}
}

// A line of a plugin has the digest of the version that is active, also the one that says that it goes.
func TestDigests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.json")
	l := New(Options{To: file, MaxBytes: 1 << 20, Backups: 1, Observer: observe.Discard()})
	changed, want := &observe.FieldChanged{Plugin: "a"}, []string{}
	for _, e := range []struct {
		event  observe.Event
		digest string
	}{
		{changed, ""}, {&observe.PluginLoaded{Plugin: "a", Digest: "ab"}, "ab"}, {changed, "ab"}, {&observe.FieldChanged{Plugin: "b"}, ""},
		{&observe.PluginReplaced{PluginLoaded: observe.PluginLoaded{Plugin: "a", Digest: "cd"}}, "cd"}, {changed, "cd"}, {&observe.PluginSettingsChanged{Plugin: "a"}, "cd"},
		{&observe.PluginRemoved{Plugin: "a"}, "cd"}, {changed, ""},
	} {
		l.Observe(t.Context(), e.event)
		want = append(want, e.digest)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for i, line := range written(t, file) {
		if line.Digest != want[i] {
			t.Errorf("line %d, %s, has the digest %q, want %q", i, line.Event, line.Digest, want[i])
		}
	}
}

// memory is a destination that counts.
type memory struct{ lines [][]byte }

func (m *memory) write(b []byte) error { m.lines = append(m.lines, b); return nil }
func (m *memory) close() error         { return nil }

// A plugin that makes ever more and longer lines cannot turn the log over: a line is bounded, and so is what a plugin
// writes. Its next line says how many are missing, and other plugins' lines are there.
func TestAPluginIsBounded(t *testing.T) {
	var seen observe.Recorder
	out := new(memory)
	l := &Log{observer: &seen, out: out, budgets: map[string]*budget{}}
	at, long := time.Now(), strings.Repeat("é", 32<<10)
	flood := entry{at: at, line: lineOf(&observe.FieldChanged{Plugin: "a", Object: web, Field: long, Previous: long, Value: long})}
	const events = 100_000
	for range events {
		l.write(flood)
	}
	size := 0
	for _, line := range out.lines {
		if size += len(line); len(line) > 8<<10 || !bytes.Contains(line, []byte(`"cut":`)) {
			t.Fatalf("a line has %d bytes: %s", len(line), line)
		}
	}
	if size > burst || size < burst/2 {
		t.Errorf("the plugin wrote %d bytes, %d are allowed", size, burst)
	}
	dropped := events - len(out.lines)
	l.write(entry{at: at, line: lineOf(&observe.FieldChanged{Plugin: "b"})})
	later := flood
	later.at = at.Add(2 * repeatTime)
	l.write(later)
	last := out.lines[len(out.lines)-2:]
	if !bytes.Contains(last[0], []byte(`"plugin":"b"`)) || !bytes.Contains(last[1], fmt.Appendf(nil, `"dropped":%d}`, dropped)) {
		t.Errorf("%d lines are dropped, and the last ones are\n%s", dropped, bytes.Join(last, nil))
	}
	told := 0
	for _, e := range observe.All[*observe.AuditLinesLimited](seen.Take()) {
		told += e.Lines
	}
	if told != dropped {
		t.Errorf("the events tell of %d lines, want %d", told, dropped)
	}
}

// A full file is renamed, as many as asked for are kept, and all are private, also if the first
// was there with another mode.
func TestRotation(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.json")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	out := outputOf(Options{To: name, MaxBytes: 1 << 20, Backups: 2})
	text := append(bytes.Repeat([]byte("x"), 250<<10), '\n')
	for range 21 { // 4 in a file
		if err := out.write(text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // renamed files have the time in their names
	}
	var all []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // old files are removed beside
		if all, _ = filepath.Glob(filepath.Join(filepath.Dir(name), "*")); len(all) == 3 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the files are %q, want 3", all)
		}
	}
	for _, file := range all {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 || info.Size() > 1<<20 {
			t.Errorf("%s: %v %v, error %v", file, info.Mode(), info.Size(), err)
		}
	}
	if err := out.close(); err != nil {
		t.Error(err)
	}
}

// A file that somebody has removed or renamed, as logrotate does, is made anew.
func TestFileIsTakenAway(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.json")
	out := outputOf(Options{To: name, MaxBytes: 1 << 20, Backups: 2})
	defer out.close()
	for i, away := range []func() error{
		func() error { return nil },
		func() error { return os.Remove(name) },
		func() error { return os.Rename(name, name+".1") },
		func() error { return errors.Join(os.Rename(name, name+".2"), os.WriteFile(name, nil, 0o644)) },
	} {
		if err := errors.Join(away(), out.write([]byte(fmt.Sprintln(i)))); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if info, also := os.Stat(name); errors.Join(err, also) != nil || string(text) != fmt.Sprintln(i) || info.Mode() != 0o600 {
			t.Errorf("line %d is not in the file, which has %q, %v, %v", i, text, err, also)
		}
	}
}

// What is no file keeps its mode, and is not renamed: a line is lost with a reason.
func TestNoRegularFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := outputOf(Options{To: path, MaxBytes: 1 << 20, Backups: 1}).write([]byte("{}\n")); err == nil {
		t.Error("a line was written into a pipe")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the pipe is %v, %v", info.Mode(), err)
	}
}

// stuck is a destination that takes no line until it is released.
type stuck chan struct{}

func (s stuck) write([]byte) error { <-s; return nil }
func (s stuck) close() error       { return nil }

// A destination that hangs keeps neither calls nor, for long, the end. Lines that find no place
// in the queue are counted, and are an event.
func TestDestinationHangs(t *testing.T) {
	var seen observe.Recorder
	out := make(stuck)
	l := start(&seen, out)
	const more = 100
	for range queueLength + 1 + more {
		l.Observe(t.Context(), &observe.BypassOff{})
	}
	if lost := l.Lost(); lost < more || lost > more+1 { // one more if the writer has not taken one
		t.Errorf("%d lines are lost, want %d", lost, more)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "lines were not written") {
		t.Errorf("the end says %v", err)
	}
	close(out)
	<-l.closed
	all := observe.All[*observe.AuditLinesLost](seen.Take())
	if len(all) != 1 || int64(all[0].Lines) != l.Lost() || !errors.Is(all[0].Err, errFull) {
		t.Errorf("the events are %v", all)
	}
}

// full is a destination that takes no line while it is true.
type full bool

func (f *full) write([]byte) error {
	if *f {
		return syscall.ENOSPC
	}
	return nil
}
func (f *full) close() error { return nil }

// TestEachLostLineIsTold: what was lost within a minute of a warning is told with a later line, also when lines can be written again.
func TestEachLostLineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen observe.Recorder
		out := full(true)
		l := start(&seen, &out)
		line := func() {
			l.Observe(t.Context(), &observe.BypassOff{})
			synctest.Wait()
		}
		for range 5 {
			line()
		}
		out = false
		line()
		time.Sleep(repeatTime)
		line()
		line()
		told := 0
		for _, e := range observe.All[*observe.AuditLinesLost](seen.Take()) {
			if told += e.Lines; !errors.Is(e.Err, syscall.ENOSPC) {
				t.Errorf("lost for the reason %v", e.Err)
			}
		}
		if told != 5 || l.Lost() != 5 {
			t.Errorf("%d lines are lost, and warnings tell of %d", l.Lost(), told)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// However many lines plugins make at once, there is room for those of another plugin and of operators. A plugin has its room
// back once its lines are written.
func TestAPluginTakesNoOthersLine(t *testing.T) {
	out := make(stuck)
	l := start(observe.Discard(), out)
	for _, plugin := range []string{"a", "b"} {
		for range 2 * queueLength {
			l.Observe(t.Context(), &observe.FieldChanged{Plugin: plugin})
		}
	}
	lost := l.Lost()
	l.Observe(t.Context(), &observe.BypassOn{})
	l.Observe(t.Context(), &observe.CallRefused{Plugin: "c"})
	if more := l.Lost() - lost; lost == 0 || more > 0 {
		t.Errorf("two plugins lost %d lines, and others %d", lost, more)
	}
	close(out)
	if err := l.Close(); err != nil {
		t.Log(err)
	}
	<-l.closed
	if len(l.waiting) > 0 {
		t.Errorf("of an empty queue these are waiting: %v", l.waiting)
	}
}
