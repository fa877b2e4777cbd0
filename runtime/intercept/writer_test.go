package intercept

import (
	"context"
	"errors"
	"testing"
)

// Who waits for a runtime that does not answer waits no longer than its own time.
func TestWriters(t *testing.T) {
	turns := NewTurns()
	var ends []func()
	for range maxWriters {
		done, err := turns.writer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.writer(ctx); !errors.Is(err, errBusy) {
		t.Errorf("one write more than there may be: %v", err)
	}
	ends[0]()
	if _, err := turns.writer(t.Context()); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
