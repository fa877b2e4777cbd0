package proxy

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// A lock that is held does not keep the process from ending.
func TestLockEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	unlock, err := regular.LockFile(t.Context(), path+lockSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	if _, err := Listen(ctx, path, 0o660); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path+lockSuffix+": another process holds the lock") {
		t.Errorf("Listen ended with %v", err)
	}
}
