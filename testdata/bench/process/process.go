// Package process runs a program for a harness: it starts it, waits until it is
// ready, reads what it uses of the machine, and ends it. Nothing that it starts
// outlives the harness. What the program is for is not its concern.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is one that the harness started and ends. What it writes goes to a file.
type Process struct {
	Cmd *exec.Cmd
	Log string // path of what it wrote
}

// Start runs a program whose output goes to dir/name.log, after what is there already. attr may be nil.
func Start(dir, name string, attr *syscall.SysProcAttr, argv ...string) (*Process, error) {
	out, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = syscall.SIGKILL // nothing outlives a harness that was killed
	attr.Setpgid = true              // an interrupt is the harness's: it ends the others in order
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, attr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &Process{Cmd: cmd, Log: out.Name()}, nil
}

// Stop ends the process with SIGTERM and reports how it ended.
func (p *Process) Stop() error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return p.Cmd.Wait()
	}
	kill := time.AfterFunc(10*time.Second, func() { p.Cmd.Process.Kill() })
	defer kill.Stop()
	return p.Cmd.Wait()
}

// Exited reports whether the process has ended. It stays a zombie until Stop.
func (p *Process) Exited() bool {
	var child unix.Siginfo // /proc shows a process whose thread calls exec as a zombie, too, for a moment
	err := unix.Waitid(unix.P_PID, p.Cmd.Process.Pid, &child, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil || child.Signo != 0
}

func (p *Process) proc(file string) ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Cmd.Process.Pid, file))
}

// Memory returns a value of proc_pid_status(5) in bytes: VmRSS is the resident set, and RssAnon what of it is no
// page of a file, which the kernel can drop and read again.
func (p *Process) Memory(name string) (int64, error) {
	status, err := p.proc("status")
	if err != nil {
		return 0, err
	}
	_, after, found := bytes.Cut(status, []byte("\n"+name+":"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("no %s in the status of process %d", name, p.Cmd.Process.Pid)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}

// CPU returns the time that all threads of the process have run so far: the first number of
// each thread's schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst). A thread
// that ended is not counted; Go's runtime ends none.
func (p *Process) CPU() time.Duration {
	var sum time.Duration
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.Cmd.Process.Pid))
	for _, file := range files {
		stat, _ := os.ReadFile(file) // the thread may have gone
		if fields := bytes.Fields(stat); len(fields) > 0 {
			ns, _ := strconv.ParseInt(string(fields[0]), 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// Await calls ready until it succeeds. It gives up when the process ended or after half a
// minute, with the last words of the process.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if p.Exited() || ctx.Err() != nil {
			return fmt.Errorf("%s is not ready: %w; its log ends:\n%s", filepath.Base(p.Cmd.Path), err, p.LastWords())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// LastWords returns the end of what the process wrote.
func (p *Process) LastWords() []byte {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-2000):]
}

// StopAll stops processes in order, and reports what ended otherwise than asked.
func StopAll(ps []*Process) error {
	var errs []error
	for _, p := range ps {
		var exit *exec.ExitError
		err := p.Stop()
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
			err = nil // it has no handler of its own
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", filepath.Base(p.Cmd.Path), err))
		}
	}
	return errors.Join(errs...)
}
