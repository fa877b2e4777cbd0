package daemon

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// following is how far the store follows the backend.
type following uint8

const (
	unfollowed following = iota // there is no plugin: the store is empty, and every byte passes
	filling                     // it follows calls, and is being filled with what the backend has
	filled                      // or the backend cannot be asked: then hooks read through
)

// fill fills the store in the background, now that it follows calls. No plugin gets an event
// until that is done.
func (s *slots) fill(ctx context.Context) {
	d := s.daemon
	s.store = filling
	s.fills++
	fill := s.fills
	s.jobs.Go(func() {
		d.fill(ctx)
		s.post(func(context.Context) {
			switch {
			case s.store == unfollowed:
				d.store.Clear()
			case fill == s.fills: // else another one began since
				s.store = filled
			}
		})
	})
}

// unfollow forgets everything, since the last plugin is gone. Its values are undone first, for
// which the store has to know the containers.
func (s *slots) unfollow(ctx context.Context) {
	d := s.daemon
	s.store, s.published = unfollowed, nil
	d.current.swap(nil)
	d.following.Store(false)
	s.observer.Observe(ctx, &observe.NoPlugins{})
	s.jobs.Go(func() {
		d.undoRemoved(ctx)
		s.post(func(context.Context) {
			if s.store == unfollowed {
				d.store.Clear()
			}
		})
	})
}

// refill brings the store up to date after the backend came back, which may be
// another version of itself by now.
func (d *daemon) refill(ctx context.Context) {
	if d.following.Load() {
		d.fill(ctx)
		d.syncTrigger.notify()
	}
}
