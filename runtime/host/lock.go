package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is locked while a host is changed, and is there for so long. /run belongs to root, so that nobody else can
// hold the lock.
const lockFile = "/run/wasmproxy-host.lock"

// lockTime is how long a run waits for another one, which may itself wait for the proxy, and twice for kubelet.
const lockTime = 10 * time.Minute

// lock keeps other runs of this package from the host until unlock is called or the process ends. A run that changes
// nothing needs no lock, so that it also works where nothing can be written.
func (h *Host) lock(ctx context.Context, c Consent) (unlock func(), err error) {
	if c.DryRun {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for said := false; ; said = true {
		unlock, where, err := h.Root.tryLock()
		if err != nil {
			advice := ""
			if errors.Is(err, fs.ErrPermission) {
				advice = "; run the command as root, or with --dry-run"
			}
			return nil, fmt.Errorf("locking %s against other wasmproxy host commands: %w%s", where, err, advice)
		}
		if unlock != nil {
			return unlock, nil
		}
		if !said {
			h.say("waiting for another wasmproxy host command, which has locked %s", where)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another wasmproxy host command, which has locked %s: %w; nothing was changed: run the command again when that one has ended (fuser %s)", where, context.Cause(ctx), where)
		}
	}
}

// tryLock returns nil if another run has the lock.
func (r Root) tryLock() (unlock func(), where string, err error) {
	f, where := (*os.File)(nil), lockFile
	if r.Live() {
		f, err = os.OpenFile(lockFile, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	} else { // its directory, so that no file stays in the image
		where = string(r)
		f, err = os.Open(where)
	}
	if err != nil {
		return nil, where, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		f.Close()
		return nil, where, nil
	case err != nil:
		f.Close()
		return nil, where, err
	case !r.Live():
		return func() { f.Close() }, where, nil
	}
	held, err := f.Stat()
	if now, statErr := os.Lstat(where); err != nil || statErr != nil || !os.SameFile(held, now) { // its last holder has removed it
		f.Close()
		return nil, where, err
	}
	return func() { os.Remove(where); f.Close() }, where, nil
}
