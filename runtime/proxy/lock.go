package proxy

import (
	"fmt"
	"os"
	"syscall"
)

// lock waits until no other process, and no other caller in this one, holds the
// lock on path. The lock is on a file beside path that unlock removes.
func lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
		if isAt(f, name) {
			return func() {
				os.Remove(name)
				f.Close()
			}, nil
		}
		f.Close() // its last holder has removed it
	}
}

func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}

// isAt reports whether f is still the file called name.
func isAt(f *os.File, name string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(held, there)
}
