package isolation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// outside prepares, runs the tests inside, and cleans up. It returns the tests' exit code.
func outside(s Stages) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(),
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()

	hierarchies, err := checkMachine()
	if err != nil {
		return 1, err
	}
	unlock, err := Lock(ctx)
	if err != nil {
		return 1, err
	}
	defer unlock()
	w, err := newWorkspace(s.Cache)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.Dir)) }()
	if err := s.Outside(ctx, w); err != nil {
		return 1, err
	}
	if err := hierarchies.remove(); err != nil { // a killed run may have left them
		return 1, err
	}
	defer func() { err = errors.Join(err, hierarchies.remove()) }()
	if err := hierarchies.create(); err != nil {
		return 1, err
	}
	return runInit(ctx, w)
}

// Lock waits until no other run is under way on this machine: the cgroups'
// name is the same for all, and so is the cache. An abstract socket leaves no file and goes with its owner.
func Lock(ctx context.Context) (unlock func(), err error) {
	for waiting := false; ; waiting = true {
		l, err := net.Listen("unix", "@wasmproxy-e2e")
		if err == nil {
			return func() { l.Close() }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("taking the lock of the e2e tests: %w", err)
		}
		if !waiting {
			fmt.Fprintln(os.Stderr, "e2e: waiting for another run on this machine to end")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another run to end: %w", context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// newWorkspace makes an empty workspace in cache and empties the logs of the last run.
func newWorkspace(cache string) (Workspace, error) {
	dir := filepath.Join(cache, "run")
	w := workspaceAt(dir)
	for _, d := range []string{dir, w.Log} {
		if err := os.RemoveAll(d); err != nil {
			return w, fmt.Errorf("removing what an earlier run left: %w", err)
		}
	}
	for _, d := range []string{w.Log, w.Bin(), w.Path("tmp")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return w, fmt.Errorf("making the workspace: %w", err)
		}
	}
	return w, nil
}

// runInit starts process 1 of the namespaces and waits for it. When ctx ends it
// kills it, and the kernel kills everything inside with it.
func runInit(ctx context.Context, w Workspace) (int, error) {
	// The kernel sends Pdeathsig when the thread that made the child ends, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), stageVariable+"="+stageInit, workspaceVariable+"="+w.Dir, "TMPDIR="+w.Path("tmp"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // a terminal's Ctrl-C is for this process alone
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return 1, fmt.Errorf("the tests were ended: %w", context.Cause(ctx))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running the tests in namespaces of their own: %w", err)
	}
	return 0, nil
}
