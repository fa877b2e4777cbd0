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
	unlock, err := lock(ctx, "run-"+s.Name)
	if err != nil {
		return 1, err
	}
	defer unlock()
	w, err := newWorkspace(s.Cache, s.Name)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.Dir)) }()
	if err := s.prepare(ctx, w); err != nil {
		return 1, err
	}
	if err := hierarchies.remove(s.Name); err != nil { // a killed run may have left them
		return 1, err
	}
	defer func() { err = errors.Join(err, hierarchies.remove(s.Name)) }()
	if err := hierarchies.create(s.Name); err != nil {
		return 1, err
	}
	return runInit(ctx, w)
}

func (s Stages) prepare(ctx context.Context, w Workspace) error {
	unlock, err := LockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.Outside(ctx, w)
}

// LockCache waits until no other run on this machine builds or installs.
func LockCache(ctx context.Context) (unlock func(), err error) { return lock(ctx, "cache") }

// lock waits until nobody else on this machine has the lock of this name. An
// abstract socket leaves no file and goes with its owner.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	for waiting := false; ; waiting = true {
		l, err := net.Listen("unix", "@wasmproxy-e2e-"+name)
		if err == nil {
			return func() { l.Close() }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("taking the lock %s of the e2e tests: %w", name, err)
		}
		if !waiting {
			fmt.Fprintln(os.Stderr, "e2e: waiting for another run on this machine:", name)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another run (%s): %w", name, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// newWorkspace makes an empty workspace in cache and empties the logs of the last run.
func newWorkspace(cache, name string) (Workspace, error) {
	dir := filepath.Join(cache, "run-"+name)
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
