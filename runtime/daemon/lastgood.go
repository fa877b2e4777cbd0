package daemon

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// lastGood saves the last good version of each plugin, in the background: the owner of the slots does not wait
// for a disk. It is safe for concurrent use.
type lastGood struct {
	observer observe.Observer
	store    *lastgood.Store
	changed  trigger
	saving   sync.Mutex // held while files are written

	mu      sync.Mutex
	away    bool                        // another process has the directory, in which nothing is written
	pending map[string]lastgood.Version // to be saved, by id
	retain  map[string]bool             // the plugins that there are; nil: as before
	failing bool                        // the last write failed, and that was reported
}

// openLastGood opens data-dir. Without it calls are served all the same, and nothing is kept: that is an event.
func openLastGood(ctx context.Context, c *config.Config, observer observe.Observer) *lastGood {
	l := &lastGood{observer: observer, changed: newTrigger(), pending: map[string]lastgood.Version{}}
	var err error
	if l.store, err = lastgood.Open(c.DataDir); err != nil {
		observer.Observe(ctx, &observe.LastGoodNotSaved{Err: err})
		l.store, l.failing, l.away = new(lastgood.Store), true, true
	}
	return l
}

// all returns what an earlier process has saved. A file that is lost, damaged or not trusted is an event.
func (l *lastGood) all(ctx context.Context, dirs registry.Dirs) map[string]lastgood.Version {
	all, ignored := l.store.All(dirs)
	for _, err := range ignored {
		l.observer.Observe(ctx, &observe.LastGoodIgnored{Err: err})
	}
	return all
}

// keep has a version saved.
func (l *lastGood) keep(v lastgood.Version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[v.Description.ID] = v
	l.changed.notify()
}

// forget has the versions of all plugins removed but of these.
func (l *lastGood) forget(there map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pending, func(id string, _ lastgood.Version) bool { return !there[id] })
	l.retain = there
	l.changed.notify()
}

// run saves until ctx is done, and tries again what failed.
func (l *lastGood) run(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-l.changed:
		case <-again:
		case <-ctx.Done():
			return
		}
		if again = nil; !l.save(ctx) {
			again = time.After(saveAgain)
		}
	}
}

// save saves what is to be saved, and reports whether nothing is left.
func (l *lastGood) save(ctx context.Context) (all bool) {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	if l.away {
		l.mu.Unlock()
		return true
	}
	pending, retain := maps.Clone(l.pending), l.retain
	l.mu.Unlock()
	var failed error
	if retain != nil {
		failed = l.store.Retain(retain)
	}
	done := map[string]bool{}
	for id, v := range pending {
		if err := l.store.Keep(v); err != nil {
			failed = err
		} else {
			done[id] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pending, func(id string, v lastgood.Version) bool {
		return done[id] && v.Since.Equal(pending[id].Since) && v.Description.Same(pending[id].Description)
	})
	if failed != nil && !l.failing {
		l.observer.Observe(ctx, &observe.LastGoodNotSaved{Err: failed})
	}
	l.failing = failed != nil
	return failed == nil
}

// saved reports whether the last write succeeded.
func (l *lastGood) saved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failing
}

// release leaves the directory to another process; resume takes it back.
func (l *lastGood) release() { l.setAway(true) }
func (l *lastGood) resume()  { l.setAway(false) }

func (l *lastGood) setAway(away bool) {
	l.saving.Lock() // no write is under way afterwards
	defer l.saving.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	l.changed.notify()
}

// descriptionsOf returns the descriptions of versions, by id.
func descriptionsOf(all map[string]lastgood.Version) map[string]registry.Description {
	descriptions := make(map[string]registry.Description, len(all))
	for id, v := range all {
		descriptions[id] = v.Description
	}
	return descriptions
}
