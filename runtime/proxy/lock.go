package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// lock waits until no other process, and no other caller in this one, holds the
// lock on path, or until ctx is done. The lock is on a file beside path that
// unlock removes. A file that another user could hold the lock of is an error.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	name := path + ".lock"
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		if err := private(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock file %s: %w; remove it", name, err)
		}
		if err := regular.Lock(ctx, f); err != nil {
			f.Close()
			return nil, err
		}
		held, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
		if there, err := os.Lstat(name); err == nil && os.SameFile(held, there) {
			return func() {
				os.Remove(name)
				f.Close()
			}, nil
		}
		f.Close() // its last holder has removed it
	}
}

// private returns an error if f is not a regular file that this user alone can
// open. Where everybody may make files, somebody else may have made this one.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return errors.New("it is not a regular file")
	case int(owner) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d, not to %d", owner, os.Geteuid())
	case mode.Perm()&^fs.FileMode(0o600) != 0:
		return fmt.Errorf("its mode is %v, so other users can hold the lock", mode)
	}
	return nil
}
