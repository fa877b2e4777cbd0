package codecache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is the first argument of a program that is started to compile. Its
// second argument is a Job.
const Command = "compile"

// Job is the argument of a child, as JSON. Nothing in it comes from the module.
type Job struct {
	Dir      string // for the result: empty, and the child's alone
	Settings string // as given to Get
	Limits   Limits
}

// ParseJob reads what the program was started with.
func ParseJob(argument string) (Job, error) {
	var j Job
	if err := json.Unmarshal([]byte(argument), &j); err != nil {
		return j, fmt.Errorf("reading what is to be compiled: %w", err)
	}
	return j, nil
}

// WallError says that a compilation was ended by the clock. That it came to it is the doing
// of the node: what takes so much by itself meets the limit of processor time before.
type WallError struct {
	Limit time.Duration
}

// Error names the limit.
func (e *WallError) Error() string {
	return fmt.Sprintf("took longer than the %v that it may", e.Limit)
}

var errWall = errors.New("wall time is up")

// runChild has the program do a job. The child ends when ctx does, and when we
// do, whatever ends us.
func runChild(ctx context.Context, program, job string, module []byte, l Limits) error {
	limited, cancel := context.WithTimeoutCause(ctx, l.Wall, errWall)
	defer cancel()
	said, crash := &head{left: maxSaid}, &head{left: maxSaid}
	cmd := exec.CommandContext(limited, program)
	cmd.Args = []string{os.Args[0], Command, job}
	cmd.Env = []string{} // nil would be ours
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(module)
	cmd.Stdout, cmd.Stderr = said, crash
	cmd.WaitDelay = 10 * time.Second // for pipes that close when the child ends, on a machine that stalls
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The signal comes when the thread ends that started the child, so that must not be one that Go may end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	state, wrote := cmd.ProcessState, crash.String()
	switch { // which limit it was that it ran into
	case err == nil:
		return nil
	case errors.Is(context.Cause(limited), errWall):
		return &WallError{l.Wall}
	case limited.Err() != nil:
		return context.Cause(limited)
	case state == nil:
		return fmt.Errorf("starting the process that compiles: %w", err)
	case killed(state) && state.UserTime()+state.SystemTime() >= l.CPU/4*3:
		return fmt.Errorf("took more than the %v of processor time that it may", l.CPU)
	case killed(state): // by the kernel, as the first process that it ends, or by an operator
		return &nodeError{"the process that compiles was killed: the node's memory may be used up", syscall.ENOMEM}
	case strings.Contains(wrote, "failed to create new OS thread"), strings.Contains(wrote, "pthread_create failed"): // the latter with cgo
		return &nodeError{"the process that compiles got no thread: the node may have as many as it can", syscall.EAGAIN}
	case strings.Contains(wrote, "out of memory"), strings.Contains(wrote, "cannot allocate memory"):
		return fmt.Errorf("took more than the %d MiB of memory that it may", l.Memory>>20)
	case state.ExitCode() <= 0 || said.Len() == 0:
		line, _, _ := strings.Cut(wrote, "\n")
		return fmt.Errorf("the process that compiles: %w: %q", err, line)
	}
	// It is no fault of the module if the node lacks space for the compiled code.
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		if strings.Contains(said.String(), errno.Error()) {
			return &nodeError{said.String(), errno}
		}
	}
	return errors.New(said.String())
}

// nodeError is what a child said, or ended by, that is the doing of the node.
type nodeError struct {
	said  string
	errno syscall.Errno
}

func (e *nodeError) Error() string { return e.said }
func (e *nodeError) Unwrap() error { return e.errno }

// killed reports an end by SIGKILL, which the kernel sends at the limit of
// processor time. It counts that by ticks, and differs from what it reports.
func killed(state *os.ProcessState) bool {
	s, ok := state.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// maxSaid is how much of what a child writes is read. What it says of the module
// is on its standard output; on the other is what Go writes when it crashes.
const maxSaid = 4 << 10

// head keeps the beginning of what is written to it.
type head struct {
	strings.Builder
	left int
}

// Write keeps what still fits, and never fails.
func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.left)
	h.left -= n
	h.Builder.Write(b[:n])
	return len(b), nil
}
