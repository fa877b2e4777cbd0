package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// A write by another process shows once, a read and a process that moves into the group do not, and a
// group that is made again under its name is another one.
func TestWatch(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	w := must(NewWatch())(t)
	t.Cleanup(func() { w.Close() })
	group := testGroup(t, f)
	add := func() bool {
		g := f.Group(group)
		defer g.Close()
		must(g.Get("pids.max"))(t)
		return w.Add(g)
	}
	expect := func(when string, want bool) {
		t.Helper()
		if written := must(w.Written())(t); written[group] != want || len(written) > 1 {
			t.Errorf("%s: written are %v, want %s: %v", when, written, group, want)
		}
	}
	if add() || !add() {
		t.Error("the group is watched before it was added, or is not after that")
	}
	expect("after reads", false)
	dir := pidsDir(f, group)
	run := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write := func() { run("echo 77 > " + dir + "/pids.max") }
	run("echo $$ > " + dir + "/cgroup.procs")
	expect("after a process has moved into it", false)
	write()
	expect("after a write", true)
	expect("asked again", false)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if add() || !add() {
		t.Error("the group that was made again is watched before it was added, or is not after that")
	}
	write()
	expect("after a write to the group that was made again", true)
	w.Retain(func(string) bool { return false })
	write()
	expect("after it was forgotten", false)
	if add() {
		t.Error("the group is watched although it was forgotten")
	}
}

// pidsDir is the directory of a group that has the file pids.max.
func pidsDir(f *FS, group string) string {
	return filepath.Join(f.path, map[int]string{1: "pids"}[f.Version()], group)
}

// setting is a number that the kernel tells of itself.
func setting(t *testing.T, file string) int {
	t.Helper()
	return must(strconv.Atoi(strings.TrimSpace(string(must(os.ReadFile(file))(t)))))(t)
}

// A Watch takes no more than its part of what the user may watch, and gives back what a group had that
// is gone.
func TestWatchLeavesOthersTheirs(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	w := must(NewWatch())(t)
	t.Cleanup(func() { w.Close() })
	all := setting(t, maxUserWatches)
	if w.most > all/4 || w.most == 0 {
		t.Errorf("a Watch takes %d directories at most, where the user may watch %d", w.most, all)
	}
	w.most = 1
	first, second := testGroup(t, f), testGroup(t, f)
	add := func(group string) bool {
		g := f.Group(group)
		defer g.Close()
		must(g.Get("pids.max"))(t)
		return w.Add(g)
	}
	if add(first) || !add(first) || add(second) || add(second) || !add(first) {
		t.Errorf("watched are %v, want %s", w.groups, first)
	}
	if err := os.Remove(pidsDir(f, first)); err != nil {
		t.Fatal(err)
	}
	gone := f.Group(first)
	if _, err := gone.Get("pids.max"); err == nil {
		t.Error("a group that was removed is read")
	}
	if w.Add(gone) || add(second) || !add(second) {
		t.Errorf("watched are %v, want %s", w.groups, second)
	}
}

// If the kernel had more to tell than it keeps, Written says so once.
func TestWatchThatLosesEvents(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	w := must(NewWatch())(t)
	t.Cleanup(func() { w.Close() })
	var files []*os.File // of two groups: the kernel joins equal events in a row
	for range 2 {
		group := testGroup(t, f)
		g := f.Group(group)
		must(g.Get("pids.max"))(t)
		w.Add(g)
		g.Close()
		file := must(os.OpenFile(filepath.Join(pidsDir(f, group), "pids.max"), os.O_WRONLY, 0))(t)
		t.Cleanup(func() { file.Close() })
		files = append(files, file)
	}
	for n := range setting(t, "/proc/sys/fs/inotify/max_queued_events") + 1 {
		if _, err := files[n%2].WriteAt([]byte("77"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Written(); err == nil {
		t.Error("no events were lost")
	}
	if written, err := w.Written(); err != nil || len(written) > 0 {
		t.Errorf("asked again, written are %v: %v", written, err)
	}
}

// What counts as noise is no file of the table.
func TestNoiseIsNotOfTheTable(t *testing.T) {
	for _, x := range rules.Files {
		names := []string{x.Name}
		if x.V1 != nil {
			names = append(names, x.V1.Files()...)
		}
		for _, name := range names {
			if isNoise(name) {
				t.Errorf("writes of %s are not heard", name)
			}
		}
	}
}
