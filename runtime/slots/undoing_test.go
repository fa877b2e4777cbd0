package slots

import (
	"testing"
	"testing/synctest"
	"time"
)

// Updates wait while values are being undone, and no longer than the bypass allows; else they do not
// wait at all.
func TestUpdatesWaitForAnUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u undoing
		if hold, cancel := u.wait(t.Context()); hold.Err() == nil {
			t.Error("an update waits though nothing is undone")
		} else {
			cancel()
		}
		u.begin()
		over := make(chan error, 1)
		go func() {
			hold, cancel := u.wait(t.Context())
			defer cancel()
			over <- hold.Err()
		}()
		time.Sleep(undoHold / 10)
		if len(over) > 0 {
			t.Error("an update does not wait for an undo")
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
		if time.Until(u.until) != undoHold {
			t.Error("a new undo has no time, since an earlier one did not end")
		}
	})
}
