package intercept_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// point is where the proxy may be killed: what it has saved, and what the kernel holds, are kept as they are.
func (w *modelWorld) point(at string) {
	w.killing.Lock()
	defer w.killing.Unlock()
	if w.points == 0 {
		return
	}
	if w.points--; w.points > 0 {
		return
	}
	w.runtime.mu.Lock()
	w.runtime.dead = true
	w.runtime.mu.Unlock()
	w.serial++
	w.between = w.telling
	w.where, w.killed = at, filepath.Join(filepath.Dir(w.dir), strconv.Itoa(w.serial))
	for same := false; !same; { // others go on meanwhile
		check(os.RemoveAll(w.killed))
		before := copyTree(filepath.Join(w.dir, "state"), filepath.Join(w.killed, "state"))
		copyTree(w.runtime.cgroups, filepath.Join(w.killed, "cgroup"))
		same = before == copyTree(filepath.Join(w.dir, "state"), "")
	}
}

// copyTree copies files to a directory, if it is not "", and returns their contents in one text.
func copyTree(from, to string) (all string) {
	check(filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) == ".new" {
			return nil // it has just been renamed
		}
		rel, _ := filepath.Rel(from, path)
		target := filepath.Join(to, rel)
		if d.IsDir() {
			if to == "" {
				return nil
			}
			return os.MkdirAll(target, 0o755)
		}
		text, err := os.ReadFile(path)
		for range 1000 { // it is being written, by somebody who does not wait for the clock of the test
			if len(text) > 0 || err != nil {
				break
			}
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 100_000}, nil) // a signal may end it early
			text, err = os.ReadFile(path)
		}
		all += rel + string(text)
		if err != nil || to == "" {
			return nil
		}
		return os.WriteFile(target, text, 0o600)
	}))
	return all
}

// restart starts the proxy again, after it was killed or has ended.
func (w *modelWorld) restart() {
	w.stop()
	if w.killed != "" {
		check(os.RemoveAll(w.dir))
		w.dir, w.killed, w.runtime.dead = w.killed, "", false
		w.runtime.cgroups = filepath.Join(w.dir, "cgroup")
		w.steps = append(w.steps, "  killed "+w.where)
		for _, c := range w.runtime.all() {
			c.unsettled = true
		}
		w.reviving = true
	}
	w.start()
	w.reviving = false
}

// revive starts the proxy again if it was killed, and reports that.
func (w *modelWorld) revive() bool {
	w.points = 0
	if w.killed == "" {
		return false
	}
	w.restart()
	return true
}
