package proxy

import (
	"os"
	"path/filepath"
	"sync"
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
				unlock, err := lock(path)
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
