package proxy

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
)

// TestLock: one at a time holds it, although every holder removes the file that
// the others wait for.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	var all sync.WaitGroup
	holders := make(chan struct{}, 1)
	for range 16 {
		all.Go(func() {
			for range 50 {
				unlock, err := lock(t.Context(), path)
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
	if _, err := os.Lstat(path + ".lock"); !os.IsNotExist(err) {
		t.Errorf("the lock's file is left behind: %v", err)
	}
}

// Where everybody may make files, as in /tmp, somebody else's lock file is not waited
// for: they could hold the lock for ever.
func TestLockOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	for want, spoil := range map[string]func(name string) error{
		"it belongs to user 4711":          func(name string) error { return os.Chown(name, 4711, 4711) },
		"so other users can hold the lock": func(name string) error { return os.Chmod(name, 0o640) },
	} {
		path := filepath.Join(t.TempDir(), "cri.sock")
		f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(spoil(path+".lock"), syscall.Flock(int(f.Fd()), syscall.LOCK_EX)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := Listen(ctx, path, 0o660); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path+".lock") {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// A lock that is held does not keep the process from ending.
func TestLockEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	if _, err := Listen(ctx, path, 0o660); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path+".lock: another process holds the lock") {
		t.Errorf("Listen ended with %v", err)
	}
}
