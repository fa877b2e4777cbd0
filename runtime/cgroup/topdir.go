package cgroup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// topDir is the directory of a mount, or of a v1 controller, beneath which groups are opened.
type topDir struct {
	root *os.Root
	dir  *os.File // the same directory
}

func openTop(root *os.Root) (*topDir, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &topDir{root, dir}, nil
}

func (t *topDir) close() error { return errors.Join(t.dir.Close(), t.root.Close()) }

// beneath is how a group is opened: no link of its path is followed, also if somebody
// puts one there meanwhile.
var beneath = unix.OpenHow{
	Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
}

// open opens a group's directory. The caller closes it.
func (t *topDir) open(rel string) (fd int, err error) {
	fd, err = again(func() (int, error) { return unix.Openat2(int(t.dir.Fd()), rel, &beneath) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return t.openByRoot(rel)
	}
	return fd, err
}

// openByRoot is open on Linux before 5.6, or where a seccomp profile of that time forbids openat2.
// It takes five times as long.
func (t *topDir) openByRoot(rel string) (fd int, err error) {
	dir, err := t.root.OpenFile(rel, unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer dir.Close()
	return unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// again repeats a system call that a signal has interrupted.
func again[T any](call func() (T, error)) (v T, err error) {
	for {
		if v, err = call(); err != unix.EINTR {
			return v, err
		}
	}
}
