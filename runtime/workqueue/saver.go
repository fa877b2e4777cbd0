package workqueue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// SaveAgain is how long after a failed save the next one is tried, without another change.
const SaveAgain = 10 * time.Second

// Saver saves in the background what has changed, as its Trigger tells: who changes it does not wait for a disk. It is safe for
// concurrent use.
type Saver struct {
	Trigger
	observer observe.Observer
	delay    time.Duration
	save     func() observe.Event
	saving   sync.Mutex  // held while files are written
	failing  atomic.Bool // the last save failed, and that was reported
}

// NewSaver returns a Saver. save is called once at a time, and returns nil or the event of its failure, of which there is one until
// it succeeds. What changes within the delay after a change is saved with it.
func NewSaver(observer observe.Observer, delay time.Duration, save func() (failed observe.Event)) *Saver {
	return &Saver{Trigger: NewTrigger(), observer: observer, delay: delay, save: save}
}

// Run saves changes until ctx is done, and tries again what failed.
func (s *Saver) Run(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-s.Trigger:
		case <-again:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return
		}
		if again = nil; !s.Save(ctx) {
			again = time.After(SaveAgain)
		}
	}
}

// Save saves now, and reports whether it could.
func (s *Saver) Save(ctx context.Context) bool {
	s.saving.Lock()
	defer s.saving.Unlock()
	failed := s.save()
	if !s.failing.Swap(failed != nil) && failed != nil {
		s.observer.Observe(ctx, failed)
	}
	return failed == nil
}

// Saved reports whether the last save succeeded.
func (s *Saver) Saved() bool { return !s.failing.Load() }
