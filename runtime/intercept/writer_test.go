package intercept

import (
	"context"
	"errors"
	"testing"
)

// Who waits for a runtime that does not answer waits no longer than its own time.
func TestWriters(t *testing.T) {
	queue := NewWorkQueue()
	var ends []func()
	for range maxUpdates {
		done, err := queue.acquireUpdate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := queue.acquireUpdate(ctx); !errors.Is(err, errBusy) {
		t.Errorf("one write more than there may be: %v", err)
	}
	ends[0]()
	if _, err := queue.acquireUpdate(t.Context()); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
