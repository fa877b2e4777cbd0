package host

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLock: on a host, where the file of the lock goes with it, one of many holds it at a time.
func TestLock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root is needed to write to /run") // TestEnter fails in CI without it
	}
	var all sync.WaitGroup
	var held atomic.Bool
	var count atomic.Int64
	for range 8 {
		all.Go(func() {
			h, _ := newHost(t, nil)
			h.Root = "/"
			for range 20 {
				unlock, err := h.lock(t.Context(), Consent{})
				if err != nil {
					t.Error(err)
					return
				}
				if held.Swap(true) {
					t.Error("two hold the lock")
				}
				count.Add(1)
				held.Store(false)
				unlock()
			}
		})
	}
	all.Wait()
	if _, err := os.Lstat(lockFile); err == nil || count.Load() != 160 {
		t.Errorf("%s is left, or only %d had the lock", lockFile, count.Load())
	}
}
