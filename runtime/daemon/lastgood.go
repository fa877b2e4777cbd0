package daemon

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// survivalTime is how long a process serves until a crash is not taken for one of its start.
const survivalTime = time.Minute

// lastGood saves the last good version of each plugin in data-dir, in the background: the owner of the slots does not
// wait for a disk. It is safe for concurrent use.
type lastGood struct {
	observer observe.Observer
	dir      string // "": nothing is saved
	changed  trigger
	saving   sync.Mutex // held while files are written

	mu       sync.Mutex
	versions map[string]lastgood.Version // by id
	unsaved  map[string]bool             // those of them that are to be saved
	there    map[string]bool             // the plugins that there are; nil: that is not known yet
	failing  bool                        // the last write failed, and that was reported
}

func newLastGood(dir string, observer observe.Observer) *lastGood {
	return &lastGood{
		observer: observer, dir: dir, changed: newTrigger(),
		versions: map[string]lastgood.Version{}, unsaved: map[string]bool{},
	}
}

// begin returns what an earlier process has saved. What is damaged or not trusted is an event. With crashed, the process
// before this one crashed soon after its start, and one of these versions may be the cause.
func (l *lastGood) begin(ctx context.Context, dirs registry.Dirs) (all map[string]lastgood.Version, crashed bool) {
	store, err := lastgood.Open(l.dir)
	if err != nil {
		l.observer.Observe(ctx, &observe.LastGoodIgnored{Err: err})
		return nil, false
	}
	all, ignored := store.All(dirs)
	for _, err := range ignored {
		l.observer.Observe(ctx, &observe.LastGoodIgnored{Err: err})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.versions, all)
	return all, store.Begin()
}

// copyOf returns the description of a good version with the path of the copy of its module: the file may have another
// content by now.
func (l *lastGood) copyOf(d registry.Description) registry.Description {
	if store, err := lastgood.Open(l.dir); err == nil {
		d.Copy = store.Copy(d)
	}
	return d
}

// keep has a version saved.
func (l *lastGood) keep(v lastgood.Version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[v.Description.ID], l.unsaved[v.Description.ID] = v, true
	l.changed.notify()
}

// forget has the versions of all plugins removed but of these.
func (l *lastGood) forget(there map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.versions, func(id string, _ lastgood.Version) bool { return !there[id] })
	maps.DeleteFunc(l.unsaved, func(id string, _ bool) bool { return !there[id] })
	l.there = there
	l.changed.notify()
}

// run saves until ctx is done, and tries again what failed.
func (l *lastGood) run(ctx context.Context) {
	var again <-chan time.Time
	survived := time.After(survivalTime)
	for {
		select {
		case <-l.changed:
		case <-again:
		case <-survived:
			l.survived()
			continue
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
	there := l.there
	pending := make(map[string]lastgood.Version, len(l.unsaved))
	for id := range l.unsaved {
		pending[id] = l.versions[id]
	}
	l.mu.Unlock()
	if there == nil && len(pending) == 0 {
		return true
	}
	done, failed := l.write(there, pending)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range done {
		if v, was := l.versions[id], pending[id]; v.Since.Equal(was.Since) && v.Description.Same(was.Description) { // else there is a newer one
			delete(l.unsaved, id)
		}
	}
	if failed != nil && !l.failing {
		l.observer.Observe(ctx, &observe.LastGoodNotSaved{Err: failed})
	}
	l.failing = failed != nil
	return failed == nil
}

// write opens the directory, which may have been lost or mended since, and writes to it.
func (l *lastGood) write(there map[string]bool, pending map[string]lastgood.Version) (done map[string]bool, failed error) {
	store, err := lastgood.Open(l.dir)
	if err != nil {
		return nil, err
	}
	if there != nil {
		failed = store.Retain(there)
	}
	done = map[string]bool{}
	for id, v := range pending {
		if err := store.Keep(v); err != nil {
			failed = err
		} else {
			done[id] = true
		}
	}
	return done, failed
}

// saved reports whether the last write succeeded.
func (l *lastGood) saved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failing
}

// survived notes that this process has not crashed soon after its start.
func (l *lastGood) survived() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if store, err := lastgood.Open(l.dir); err == nil {
		store.End()
	}
}

// close saves what is left.
func (l *lastGood) close(ctx context.Context) {
	l.save(ctx)
	l.survived()
}

// descriptionsOf returns the descriptions of versions, by id.
func descriptionsOf(all map[string]lastgood.Version) map[string]registry.Description {
	descriptions := make(map[string]registry.Description, len(all))
	for id, v := range all {
		descriptions[id] = v.Description
	}
	return descriptions
}
