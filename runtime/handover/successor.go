package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendTime bounds the sending of a message, which fits into the channel's buffer unless it is a
// call that was left.
const sendTime = 10 * time.Second

// Successor is the other process, as the predecessor has it. The methods are for one goroutine,
// but for Leave, which may be called after Release, by several at once.
type Successor struct {
	PID     int
	channel *channel
	pidfd   int // -1 if the kernel has none
}

// Program returns the path by which this program was started, where another version of it may be
// by now. It is to be called before the working directory changes.
func Program() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Start starts the program with the arguments and the environment of this process, and gives it
// the listener.
func Start(program string, l syscall.Conn, own Process) (*Successor, error) {
	if os.Getpid() == 1 {
		return nil, errors.New("this process has PID 1, so that no other can take its place: restart the container")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a channel: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "successor")
	defer theirs.Close()
	c, err := newChannel(os.NewFile(uintptr(pair[0]), "predecessor"))
	if err != nil {
		return nil, fmt.Errorf("making a channel: %w", err)
	}
	s := &Successor{channel: c, pidfd: -1}
	if err := s.start(program, l, pair[1]); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", program, err), c.conn.Close())
	}
	if err := c.send(message{Step: hello, Version: version, Process: &own}, sendTime); err != nil {
		s.Kill()
		return nil, fmt.Errorf("talking to the new process: %w", err)
	}
	return s, nil
}

// start starts the process as a sibling of this one: a service manager that has started this one
// hears of the end of the other, too. The listener's descriptor is passed as it is, since
// os.File.Fd would have the socket block in both processes.
func (s *Successor) start(program string, l syscall.Conn, channel int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var started error
	err = raw.Control(func(listener uintptr) {
		s.PID, started = syscall.ForkExec(program, os.Args, &syscall.ProcAttr{
			Env: environment(), Files: []uintptr{0, 1, 2, uintptr(channel), listener},
			Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT, PidFD: &s.pidfd},
		})
	})
	return errors.Join(err, started)
}

// environment is this process' own, without what names a process.
func environment() []string {
	all := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WATCHDOG_PID=") })
	return append(all, fmt.Sprintf("%s=%d", variable, os.Getpid()))
}

// AwaitPrepared returns when the successor can take the state. With ctx's end it fails.
func (s *Successor) AwaitPrepared(ctx context.Context, within time.Duration) error {
	_, err := s.channel.await(ctx, prepared, within)
	return s.wrap("preparing", err)
}

// Give gives the successor the state, and returns when it serves. With ctx's end it fails.
func (s *Successor) Give(ctx context.Context, within time.Duration) error {
	err := s.channel.send(message{Step: yours}, sendTime)
	if err == nil {
		_, err = s.channel.await(ctx, serving, within)
	}
	return s.wrap("taking over", err)
}

func (s *Successor) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the new process %d failed in %s: %w", s.PID, doing, err)
}

// Release says that this process accepts no connection any more.
func (s *Successor) Release() error {
	return s.wrap("taking over", s.channel.send(message{Step: mainNow}, sendTime))
}

// Leave leaves a call to the successor.
func (s *Successor) Leave(l Left) error {
	return s.wrap("taking a call that has ended late", s.channel.send(message{Step: left, Left: &l}, sendTime))
}

// Kill ends the successor, and returns when it is gone.
func (s *Successor) Kill() {
	defer s.channel.conn.Close() // not before: a successor that serves takes the end of the channel for that of this process
	if s.pidfd < 0 {
		_ = unix.Kill(s.PID, unix.SIGKILL)
		return
	}
	defer unix.Close(s.pidfd)
	if unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0) != nil {
		return // it is gone
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}}, int(killTime/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// killTime bounds the wait for a process that was killed.
const killTime = 5 * time.Second

var _ syscall.Conn = (*net.UnixListener)(nil) // a listener that can be given
