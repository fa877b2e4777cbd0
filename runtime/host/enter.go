package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Self is the program of this process, also where its file is in another mount namespace.
const Self = "/proc/self/exe"

// Enter continues in the mount and network namespaces of a process, usually process 1: it starts
// this program again there, with the same arguments. So it returns only with an error, or when
// the program is there already. It is for a container that installs on its host.
func Enter(pid int) error {
	of := fmt.Sprintf("/proc/%d", pid)
	own, err := os.Stat("/proc/thread-self/ns/mnt")
	other, err1 := os.Stat(of + "/ns/mnt")
	err = errors.Join(err, err1)
	switch {
	case os.Getpid() == pid:
		err = errors.New("it is this program itself, in a pid namespace of its own")
	case err == nil && os.SameFile(own, other):
		return nil
	case err == nil:
		_, err = os.Stat(of + "/root/run/systemd/system")
	}
	if err != nil {
		return fmt.Errorf("entering the host: process %d is not the host's systemd, or it may not be entered: %w; the pod needs hostPID: true, and the container privileged: true", pid, err)
	}
	return fmt.Errorf("entering the namespaces of process %d: %w; the container needs privileged: true", pid, enter(of))
}

// enter replaces this process, or returns why not. Namespaces belong to a thread, and the one that calls exec keeps
// its own for the whole process.
func enter(of string) error {
	runtime.LockOSThread() // for ever: without exec, the thread must not be used again
	var files []*os.File
	for _, name := range []string{"/ns/net", "/ns/mnt"} { // kubelet answers on /healthz in the network namespace
		f, err := os.Open(of + name)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // which entering a mount namespace requires
		return err
	}
	for _, f := range files {
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return errors.Join(errors.New("starting the program again"), unix.Exec(Self, os.Args, os.Environ()))
}
