package regular

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock keeps other processes, and other callers in this one, from locking a file or directory until it is closed. It waits
// until ctx is done. It tries again and again, as a system call that waits does not end with ctx.
func Lock(ctx context.Context, f *os.File) error {
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
