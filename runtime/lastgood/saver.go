package lastgood

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// survivalTime is how long a process serves until a crash is not taken for one of its start.
const survivalTime = time.Minute

// Saver saves the last good version of each plugin in data-dir, in the background: the owner of the slots does not
// wait for a disk. It is safe for concurrent use.
type Saver struct {
	*workqueue.Saver
	observer observe.Observer
	dir      string // "": nothing is saved

	mu      sync.Mutex
	begun   bool               // Begin was called
	unsaved map[string]Version // that are to be saved, by id
	there   map[string]bool    // the plugins that there are; nil: that is not known yet
}

// NewSaver returns a Saver of a directory. Without one, "", nothing is saved.
func NewSaver(dir string, observer observe.Observer) *Saver {
	s := &Saver{observer: observer, dir: dir, unsaved: map[string]Version{}}
	s.Saver = workqueue.NewSaver(observer, 0, s.save)
	return s
}

// Begin returns what an earlier process has saved. What is damaged or not trusted is an event. With crashed, the process
// before this one crashed soon after its start, and one of these versions may be the cause.
func (s *Saver) Begin(ctx context.Context, dirs registry.Dirs) (all map[string]Version, crashed bool) {
	if s.dir == "" {
		return nil, false
	}
	store, err := Open(s.dir)
	if err != nil {
		s.observer.Observe(ctx, &observe.LastGoodIgnored{Err: err})
		return nil, false
	}
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	all, ignored := store.All(dirs)
	for _, err := range ignored {
		s.observer.Observe(ctx, &observe.LastGoodIgnored{Err: err})
	}
	return all, store.Begin()
}

// Copy returns the description of a good version with the path of the copy of its module: the file may have another
// content by now.
func (s *Saver) Copy(d registry.Description) registry.Description {
	if s.dir == "" {
		return d
	}
	if store, err := Open(s.dir); err == nil {
		d.Copy = store.Copy(d)
	}
	return d
}

// Keep has a version saved.
func (s *Saver) Keep(v Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved[v.Description.ID] = v
	s.Notify()
}

// Retain has the versions of all plugins removed but of these.
func (s *Saver) Retain(there map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.unsaved, func(id string, _ Version) bool { return !there[id] })
	s.there = there
	s.Notify()
}

// Run saves until ctx is done, and tries again what failed.
func (s *Saver) Run(ctx context.Context) {
	defer time.AfterFunc(survivalTime, s.survived).Stop()
	s.Saver.Run(ctx)
}

// save saves what is to be saved.
func (s *Saver) save() observe.Event {
	s.mu.Lock()
	there, pending := s.there, maps.Clone(s.unsaved)
	s.mu.Unlock()
	if s.dir == "" || there == nil && len(pending) == 0 {
		return nil
	}
	done := map[string]bool{}
	store, failed := Open(s.dir) // it may have been lost or mended since
	if failed == nil {
		if there != nil {
			failed = store.Retain(there)
		}
		for id, v := range pending {
			if err := store.Keep(v); err != nil {
				failed = err
			} else {
				done[id] = true
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range done {
		if v, was := s.unsaved[id], pending[id]; v.Since.Equal(was.Since) && v.Description.Same(was.Description) { // else there is a newer one
			delete(s.unsaved, id)
		}
	}
	if failed != nil {
		return &observe.LastGoodNotSaved{Err: failed}
	}
	return nil
}

// survived notes that this process has not crashed soon after its start. One that ends before Begin, as when it cannot
// listen, leaves the note of the process before.
func (s *Saver) survived() {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return
	}
	if store, err := Open(s.dir); err == nil {
		store.End()
	}
}

// Close saves what is left.
func (s *Saver) Close(ctx context.Context) {
	s.Save(ctx)
	s.survived()
}
