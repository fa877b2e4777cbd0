package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A write by another process shows once, a read and a group's end do not, and a group that is made
// again under its name is another one.
func TestWatch(t *testing.T) {
	root := tableRoots()[0]
	f := must(Open(root, "auto"))(t)
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
	dir := filepath.Join(root, map[int]string{1: "pids"}[f.Version()], group)
	write := func() {
		t.Helper()
		if out, err := exec.Command("sh", "-c", "echo 77 > "+dir+"/pids.max").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
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
