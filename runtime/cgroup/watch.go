package cgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxUserWatches is how many directories and files all processes of the user may watch together.
const maxUserWatches = "/proc/sys/fs/inotify/max_user_watches"

// watchShare is the part of maxUserWatches that a Watch takes at most: kubelet and cAdvisor watch
// files as the same user, and stop working without.
const watchShare = 4

// Watch tells which groups had a file written, by whatever process and in whatever mount or
// namespace, so that not all files have to be read to find that out. What the kernel changes by
// itself does not show, nor does a process that moves into a group. It is one instance of inotify. Its
// methods may be called from several goroutines at once.
type Watch struct {
	mu     sync.Mutex
	fd     int
	most   int                         // directories
	groups map[string]map[string]int32 // inotify's number of each directory, by group and v1 controller
	paths  map[int32]string            // the group of each number
}

// NewWatch returns a Watch of no group. The caller closes it.
func NewWatch() (*Watch, error) {
	text, err := os.ReadFile(maxUserWatches)
	if err != nil {
		return nil, err
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", maxUserWatches, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify_init1: %w", err)
	}
	return &Watch{fd: fd, most: most / watchShare, groups: map[string]map[string]int32{}, paths: map[int32]string{}}, nil
}

// Close ends the Watch.
func (w *Watch) Close() error { return unix.Close(w.fd) }

// Add watches the directories of a group that are open, and reports whether it watched all of them
// before. It never does of those that would be more than its part of what the user may watch.
// It forgets a group that has none, which is gone.
func (w *Watch) Add(g *Group) (before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(g.dirs) == 0 {
		w.forget(g.path)
		return false
	}
	dirs := w.groups[g.path]
	if dirs == nil {
		dirs = map[string]int32{}
		w.groups[g.path] = dirs
	}
	before = true
	for _, d := range g.dirs {
		old, watched := dirs[d.controller]
		if !watched && len(w.paths) >= w.most {
			before = false
			continue
		}
		// The same directory has the same number again, and another one of the same name has not.
		n, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", d.fd), unix.IN_MODIFY)
		if before = before && err == nil && watched && old == int32(n); before {
			continue
		}
		if watched && (err != nil || old != int32(n)) {
			w.drop(old)
			delete(dirs, d.controller)
		}
		if err == nil {
			dirs[d.controller], w.paths[int32(n)] = int32(n), g.path
		}
	}
	return before
}

// forget drops all directories of a group.
func (w *Watch) forget(group string) {
	for _, n := range w.groups[group] {
		w.drop(n)
	}
	delete(w.groups, group)
}

// drop forgets a directory. The kernel keeps the watch of one that was removed until it is told to end
// it, and does not tell of the removal.
func (w *Watch) drop(n int32) {
	_, _ = unix.InotifyRmWatch(w.fd, uint32(n))
	delete(w.paths, n)
}

// Retain forgets the groups for which keep is false.
func (w *Watch) Retain(keep func(group string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for group := range w.groups {
		if !keep(group) {
			w.forget(group)
		}
	}
}

// Written returns the groups that had a file written since Written was called before. It is an error
// if the kernel had more to tell than it keeps: then each group may be one.
func (w *Watch) Written() (groups map[string]bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	groups = map[string]bool{}
	for buffer := make([]byte, 64<<10); ; {
		n, readErr := again(func() (int, error) { return unix.Read(w.fd, buffer) })
		if readErr == unix.EAGAIN {
			return groups, err
		}
		if readErr != nil {
			return nil, fmt.Errorf("reading inotify: %w", readErr)
		}
		for event := buffer[:n]; len(event) >= unix.SizeofInotifyEvent; {
			end := unix.SizeofInotifyEvent + binary.NativeEndian.Uint32(event[12:])
			name, _, _ := bytes.Cut(event[unix.SizeofInotifyEvent:end], []byte{0})
			if binary.NativeEndian.Uint32(event[4:])&unix.IN_Q_OVERFLOW != 0 {
				err = errors.New("inotify has lost events")
			}
			if group, ok := w.paths[int32(binary.NativeEndian.Uint32(event))]; ok && !isNoise(string(name)) {
				groups[group] = true
			}
			event = event[end:]
		}
	}
}

// isNoise reports whether no plugin can set a file that is often written: cgroup.procs and tasks by
// each exec probe, and by the kernel itself memory.events and, where a process waits for it,
// memory.pressure.
func isNoise(file string) bool {
	return strings.HasPrefix(file, "cgroup.") || file == "tasks" || strings.Contains(file, ".events") || strings.HasSuffix(file, ".pressure")
}
