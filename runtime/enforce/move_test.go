package enforce_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
)

// A call may find the pod's new name before the records of its containers follow. The wish of that call
// holds after the move, its value is the host's, and the undo brings back kubelet's from before.
func TestMoveToANameThatHasARecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openState(t, dir)
	old, now := enforce.ID{Pod: "unnamed-x", Container: "c1"}, enforce.ID{Pod: "happy_bell", Container: "c1"}
	held := enforce.Held{"memory.high": "max", "cpu.idle": "0", "pids.max": "7", "cpu.max": "max"}
	ask := func(id enforce.ID, plugin, file, value string) {
		l.Record(id).Ask(wish(plugin, file, value))
		written(l, id, held, enforce.Called)
	}
	ask(old, "10-a", "memory.high", "60")
	ask(old, "10-a", "memory.high", "70")
	ask(old, "10-a", "cpu.idle", "1")
	ask(old, "10-a", "cpu.max", "5")
	held["cpu.max"] = "9" // kubelet has another limit since
	ask(now, "10-a", "memory.high", "80")
	ask(now, "20-b", "memory.high", "90")
	ask(now, "10-a", "pids.max", "3")
	ask(now, "10-a", "cpu.max", "6")
	file := filepath.Join(dir, "journal")
	state, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var unmoved []byte // the last line of the old record
	for line := range bytes.Lines(state) {
		if bytes.Contains(line, []byte(old.Pod)) {
			unmoved = line
		}
	}
	for range 2 { // the second after a proxy that was killed before it said that the old record is gone
		if err := errors.Join(l.Close(), os.WriteFile(file, state, 0o600)); err != nil {
			t.Fatal(err)
		}
		l = openState(t, dir)
		l.Record(old).Move(now.Pod)
		moved, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		state = append(moved, unmoved...)
		if due := written(l, now, held, enforce.Scan); len(due) > 0 || l.Record(old).Has() {
			t.Fatalf("%+v is due, and the records are those of %v", due, l.Objects())
		}
	}
	if w, _ := l.Record(now).Owner(enforce.File("memory.high")); w.Plugin != "10-a" || w.Value != "80" {
		t.Errorf("the first wish is %+v", w)
	}
	l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
	written(l, now, held, enforce.Called)
	for file, want := range map[string]string{"memory.high": "max", "cpu.idle": "0", "pids.max": "7", "cpu.max": "9"} {
		if held[file] != want {
			t.Errorf("without the plugins %s is %s, want %s", file, held[file], want)
		}
	}
	if !l.Empty() {
		t.Errorf("there are records of %v", l.Objects())
	}
}

// The same of a field. A later value of kubelet ends the wishes of plugins that do not repeat theirs.
func TestMoveOfFieldsToANameThatHasARecord(t *testing.T) {
	quota := enforce.Field("cpu_quota")
	asked := func(plugin, value, kubelet string) []enforce.Asked {
		return []enforce.Asked{{Target: quota, Wish: enforce.Wish{Plugin: plugin, Value: value}, Has: &kubelet}}
	}
	old, now := enforce.ID{Pod: "unnamed-x", Container: "c1"}, enforce.ID{Pod: "happy_bell", Container: "c1"}
	for name, test := range map[string]struct{ kubelet, owner string }{
		"kubelet's value is that of before":    {"50", "20-b"},
		"kubelet's value is the plugin's":      {"100", "20-b"},
		"kubelet's value is another meanwhile": {"70", "10-a"},
	} {
		t.Run(name, func(t *testing.T) {
			l := enforce.NewLedger()
			l.Record(old).Updated(enforce.Update{Kubelet: map[enforce.Target]string{quota: "50"}, Asked: append(asked("20-b", "100", "50"), asked("10-a", "60", "50")...), Sent: map[enforce.Target]string{quota: "100"}})
			l.Record(now).Updated(enforce.Update{Kubelet: map[enforce.Target]string{quota: test.kubelet}, Asked: asked("10-a", "80", test.kubelet), Sent: map[enforce.Target]string{quota: "80"}})
			l.Record(old).Move(now.Pod)
			if w, _ := l.Record(now).Owner(quota); w.Plugin != test.owner {
				t.Errorf("the first wish is %+v, want that of %s", w, test.owner)
			}
			want := test.kubelet
			if test.owner == "20-b" {
				want = "50"
			}
			l.Withdraw(func(enforce.ID, enforce.Target, enforce.Wish) bool { return true })
			if due := l.Record(now).Resets(); due[quota] != want {
				t.Errorf("without the plugins %v is due, want %s", due, want)
			}
		})
	}
}
