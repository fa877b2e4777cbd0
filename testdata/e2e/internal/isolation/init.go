package isolation

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// initProcess is process 1 of the pid namespace. It moves itself, and so all
// that follows, into the run's cgroups, starts the tests in a cgroup namespace
// rooted there, and reaps orphans until the tests end. It returns their exit code.
func initProcess(name string) (int, error) {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return 1, err
	}
	if err := hierarchies.join(name); err != nil {
		return 1, err
	}
	if err := os.Setenv(stageVariable, stageInside); err != nil {
		return 1, err
	}
	tests, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWCGROUP},
	})
	if err != nil {
		return 1, fmt.Errorf("starting the tests in a cgroup namespace: %w", err)
	}
	return reapUntil(tests)
}

// reapUntil waits for children, its own and those it inherited, until pid ends.
func reapUntil(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("waiting for the tests: %w", err)
		case ended == pid && status.Signaled():
			return 1, fmt.Errorf("the tests were ended by signal %v", status.Signal())
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}
