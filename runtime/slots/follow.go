package slots

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
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
func (s *Slots) fill(ctx context.Context) {
	s.store = filling
	s.fills++
	fill := s.fills
	s.jobs.Go(func() {
		s.reconciler.Fill(ctx)
		s.post(func(context.Context) {
			switch {
			case s.store == unfollowed:
				s.forget(ctx)
			case fill == s.fills: // else another one began since
				s.store = filled
			}
		})
	})
}

// unfollow forgets everything, since the last plugin is gone or all are bypassed. Their values are undone first, for
// which the store has to know the containers.
func (s *Slots) unfollow(ctx context.Context) {
	if len(s.published) > 0 {
		s.generation++
	}
	s.store, s.published = unfollowed, nil
	s.generations.swap(nil)
	s.reconciler.Following.Store(false)
	if !s.bypassed {
		s.observer.Observe(ctx, &observe.NoPlugins{})
	}
	s.Bypass.undoing.begin()
	s.jobs.Go(func() {
		s.reconciler.UndoEnded(ctx)
		s.Bypass.undoing.end()
		s.forget(ctx)
	})
}

// forgetTime is how long the store stays for updates that bring kubelet's values back. Eight run at a time: those of a full
// node may take a second each.
const forgetTime = 5 * time.Minute

// forget clears the store in the background, if there is no plugin, once the updates that are queued have ended: they name
// what the store has of their containers.
func (s *Slots) forget(ctx context.Context) {
	s.jobs.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, forgetTime)
		defer cancel()
		_ = s.reconciler.Queue.Drain(ctx) // an update that does not end must not keep the store for ever
		s.post(func(context.Context) {
			if s.store == unfollowed {
				s.reconciler.Store.Clear()
			}
		})
	})
}

// bypass takes all plugins out of the way, or loads them as at a start. Their key-value state and metrics go on.
func (s *Slots) bypass(ctx context.Context, on bool) {
	s.bypassed, s.changed = on, true
	for _, p := range s.order {
		if on {
			p.unload()
		} else {
			p.describe(ctx, p.description)
		}
	}
	if on {
		s.tellPresent()
		s.unfollow(ctx)
	}
}

// tellPresent tells what each plugin may want from now on. It does not until all plugins are known: a
// directory that cannot be read does not mean that its plugins are removed. Files that are bad change nothing. In a
// bypass no plugin may want anything.
func (s *Slots) tellPresent() {
	all := map[string]*intercept.Generation{}
	if s.bypassed {
		s.reconciler.Present.Store(&all)
		s.reconciler.Sync.Notify()
		return
	}
	if before := s.reconciler.Present.Load(); !s.complete && before == nil {
		return
	} else if !s.complete {
		maps.Copy(all, *before)
	}
	for _, p := range s.order {
		g, shown := new(intercept.Generation), p.shown()
		if all[p.id] = g; shown.Problem == nil {
			g.Name, g.Nothing, g.Match = shown.Generation(), shown.DryRun, shown.Match
		} else if errors.As(shown.Problem, new(*failedTrial)) { // there was no version before
			g.Name, g.Nothing = shown.Generation(), true
		}
		if errors.As(p.description.Problem, new(*failedTrial)) {
			g.Failed = p.description.Generation()
		}
		next := p.next
		if p.active != nil && p.last != nil { // the node goes back
			next = p.last
		}
		if next != nil {
			g.Next = next.description.Generation()
		}
		if p.active != nil {
			m := s.loader.Member(p.active.description, p.active.loaded, p.active.synchronized)
			g.Member = &m.Member
			m.Synchronized.Expect(g.Next)
		}
	}
	s.reconciler.Present.Store(&all)
	s.reconciler.Sync.Notify()
}
