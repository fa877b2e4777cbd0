package cgroup

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// beneath is how a group is opened: no link of its path is followed, also if somebody
// puts one there meanwhile.
var beneath = unix.OpenHow{
	Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
}

// openBeneath opens a group's directory beneath that of a mount, or of a v1 controller, which somebody
// may close meanwhile: its number must not be that of another file by then. The caller closes what it gets.
func openBeneath(top *os.File, rel string) (fd int, err error) {
	conn, err := top.SyscallConn()
	if err != nil {
		return -1, err
	}
	closed := conn.Control(func(dir uintptr) {
		fd, err = again(func() (int, error) { return unix.Openat2(int(dir), rel, &beneath) })
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			fd, err = openByRoot(dir, rel)
		}
	})
	if closed != nil {
		return -1, closed
	}
	return fd, err
}

// openByRoot is openBeneath on Linux before 5.6, or where a seccomp profile of that time forbids
// openat2. It takes three times as long.
func openByRoot(top uintptr, rel string) (fd int, err error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", top))
	if err != nil {
		return -1, err
	}
	defer root.Close()
	dir, err := root.OpenFile(rel, unix.O_DIRECTORY, 0)
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
