package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is locked while a host is changed. /run belongs to root, so that nobody else can hold the lock.
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
	f, err := h.openLock()
	if err != nil {
		return nil, fmt.Errorf("locking the host against another wasmproxy host command: %w", err)
	}
	for said := false; ; said = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !said {
			h.say("waiting for another wasmproxy host command, which has locked %s", f.Name())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another wasmproxy host command, which has locked %s: %w; nothing was changed: run the command again when that one has ended (fuser %s)", f.Name(), context.Cause(ctx), f.Name())
		}
	}
}

// openLock opens what is locked: of an image its directory, so that no file stays in it.
func (h *Host) openLock() (*os.File, error) {
	if !h.live() {
		return os.Open(h.Root)
	}
	return os.OpenFile(lockFile, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}
