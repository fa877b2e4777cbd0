package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Watch tells which groups had a file written, by whatever process and in whatever mount or
// namespace, so that not all files have to be read to find that out. What the kernel changes by
// itself does not show. It is one instance of inotify, of which [FS] needs none. Its methods may be
// called from several goroutines at once.
type Watch struct {
	mu     sync.Mutex
	fd     int
	groups map[string]map[string]int32 // inotify's number of each directory, by group and v1 controller
	paths  map[int32]string            // the group of each number
}

// NewWatch returns a Watch of no group. The caller closes it.
func NewWatch() (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify_init1: %w", err)
	}
	return &Watch{fd: fd, groups: map[string]map[string]int32{}, paths: map[int32]string{}}, nil
}

// Close ends the Watch.
func (w *Watch) Close() error { return unix.Close(w.fd) }

// Add watches the directories of a group that are open, and reports whether it watched all of them
// before. Where the kernel watches no more (see /proc/sys/fs/inotify/max_user_watches), it never does.
func (w *Watch) Add(g *Group) (before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(g.dirs) == 0 {
		return false
	}
	dirs := w.groups[g.path]
	if dirs == nil {
		dirs = map[string]int32{}
		w.groups[g.path] = dirs
	}
	before = true
	for _, d := range g.dirs {
		// The same directory has the same number again, and another one of the same name has not.
		n, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", d.fd), unix.IN_MODIFY)
		old, watched := dirs[d.controller]
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

// drop forgets a directory. The kernel refuses that if it has forgotten it already.
func (w *Watch) drop(n int32) {
	_, _ = unix.InotifyRmWatch(w.fd, uint32(n))
	delete(w.paths, n)
}

// Retain forgets the groups for which keep is false.
func (w *Watch) Retain(keep func(group string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for group, dirs := range w.groups {
		if !keep(group) {
			for _, n := range dirs {
				w.drop(n)
			}
			delete(w.groups, group)
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
			if binary.NativeEndian.Uint32(event[4:])&unix.IN_Q_OVERFLOW != 0 {
				err = errors.New("inotify has lost events")
			}
			if group, ok := w.paths[int32(binary.NativeEndian.Uint32(event))]; ok { // the end of a watch is an event, too
				groups[group] = true
			}
			event = event[unix.SizeofInotifyEvent+binary.NativeEndian.Uint32(event[12:]):]
		}
	}
}
