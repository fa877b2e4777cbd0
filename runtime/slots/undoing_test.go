package slots

import (
	"testing"
	"time"
)

// Updates wait while values are being undone, and no longer than the bypass allows; else they do not
// wait at all.
func TestUpdatesWaitForAnUndo(t *testing.T) {
	var u undoing
	if hold, cancel := u.wait(t.Context()); hold.Err() == nil {
		t.Error("an update waits though nothing is undone")
	} else {
		cancel()
	}
	u.begin()
	waiting, over := make(chan struct{}), make(chan error)
	go func() {
		close(waiting)
		hold, cancel := u.wait(t.Context())
		defer cancel()
		over <- hold.Err()
	}()
	<-waiting
	select {
	case <-over:
		t.Error("an update does not wait for an undo")
	case <-time.After(undoHold / 10):
	}
	u.end()
	if err := <-over; err != nil {
		t.Errorf("an update that has waited for the undo has no time left: %v", err)
	}
	u.begin()
	if hold, cancel := u.wait(t.Context()); hold.Err() == nil {
		t.Error("an undo that does not end holds up updates beyond its time")
	} else {
		cancel()
	}
	u.begin() // a later bypass; nothing has ended the time before
	if time.Until(u.until) < undoHold/2 {
		t.Error("a new undo has no time, since an earlier one did not end")
	}
}
