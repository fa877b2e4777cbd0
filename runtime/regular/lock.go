package regular

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// LockFile makes a file and keeps other processes, and other callers in this one, from locking it until unlock is called,
// which removes it, or the process ends. It waits until ctx is done. A file that another user could hold the lock of is an
// error.
func LockFile(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		if err == nil && !held.Mode().IsRegular() {
			err = errors.New("is not a regular file")
		}
		if err == nil {
			err = Own(held, 0o177)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock file %s %w; remove it", path, Cause(err))
		}
		if err := lock(ctx, f); err != nil {
			f.Close()
			return nil, err
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(held, there) {
			return func() {
				os.Remove(path)
				f.Close()
			}, nil
		}
		f.Close() // its last holder has removed it
	}
}

// LockDir is LockFile of a directory, which stays.
func LockDir(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lock tries again and again, as a system call that waits does not end with ctx.
func lock(ctx context.Context, f *os.File) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("locking %s: another process holds the lock: %w", f.Name(), context.Cause(ctx))
		}
	}
}
