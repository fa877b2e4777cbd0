package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
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
	where, lock := lockFile, regular.LockFile
	if !h.Root.Live() { // its directory, so that no file stays in the image
		where, lock = string(h.Root), regular.LockDir
	}
	atOnce, cancel := context.WithCancel(ctx)
	cancel()
	unlock, err = lock(atOnce, where)
	if errors.Is(err, context.Canceled) {
		h.say("waiting for another wasmproxy host command, which has locked %s", where)
		ctx, cancel := context.WithTimeout(ctx, lockTime)
		defer cancel()
		if unlock, err = lock(ctx, where); err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("waiting for another wasmproxy host command, which has locked %s: %w; nothing was changed: run the command again when that one has ended (fuser %s)", where, context.Cause(ctx), where)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; run the command as root, or with --dry-run", err)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s against other wasmproxy host commands: %w", where, err)
	}
	return unlock, nil
}
