package regular_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// TestLockFile: one at a time holds it, although every holder removes the file that the others wait for.
func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var all sync.WaitGroup
	holders := make(chan struct{}, 1)
	for range 16 {
		all.Go(func() {
			for range 50 {
				unlock, err := regular.LockFile(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case holders <- struct{}{}:
					time.Sleep(10 * time.Microsecond)
					<-holders
				default:
					t.Error("two hold the lock")
				}
				unlock()
			}
		})
	}
	all.Wait()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the lock's file is left behind: %v", err)
	}
}

// TestLockFileOfAnotherUser: where everybody may make files, as in /tmp, somebody else's lock file is not waited for: they
// could hold the lock for ever.
func TestLockFileOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	for want, spoil := range map[string]func(name string) error{
		"does not belong to user 0":            func(name string) error { return os.Chown(name, 4711, 4711) },
		"has mode 0640, and others may use it": func(name string) error { return os.Chmod(name, 0o640) },
		"is not a regular file":                func(name string) error { return errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)) },
	} {
		path := filepath.Join(t.TempDir(), "lock")
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), spoil(path)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := regular.LockFile(ctx, path); err == nil || !strings.Contains(err.Error(), "lock file "+path+" "+want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}
