package registry

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// When the directories are read again.
const (
	debounce    = 100 * time.Millisecond // after the last event of several: files are often written in steps
	maxDebounce = 400 * time.Millisecond // after the first, if they do not end
	rescan      = 10 * time.Second       // without an event: inotify may have lost one
	poll        = time.Second            // while inotify cannot be used; and how often a missing directory is looked for
	settleTime  = time.Second            // how long a file may be bad before that is reported: it may be half written
)

// Watcher keeps the list of descriptions up to date.
type Watcher struct {
	observer observe.Observer
	sources  []source
	notify   *notifier
	covered  bool            // inotify watches every directory that exists
	unread   map[string]bool // the directories that could not be read since Open
	list     List
	good     map[string]Description // the last good descriptions of what is in the list, by id
	bad      map[string]*problem    // by their texts
}

// problem is one that was reported, or will be if it lasts.
type problem struct {
	since    time.Time
	state    string // of the file, until it is reported
	reported bool
}

// Open reads the directories and watches them until ctx is done. good are the last good descriptions that are
// known of an earlier process, by id. A directory
// that is not there is made, with mode 0755, and else waited for. What is wrong
// with a file goes to the observer, not into the error.
func Open(ctx context.Context, observer observe.Observer, dirs Dirs, good map[string]Description) (*Watcher, error) {
	notify := &notifier{observer: observer, woken: make(chan struct{}, 1), watched: map[string]fs.FileInfo{}}
	w := &Watcher{observer: observer, sources: dirs.sources(), notify: notify, unread: map[string]bool{}, good: good}
	for _, s := range w.sources {
		w.unread[s.dir] = true
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			observer.Observe(ctx, &observe.DirectoryNotMade{Dir: s.dir, Err: err})
		}
	}
	if err := dirs.Distinct(); err != nil { // links may lead to what was made now
		return nil, err
	}
	w.list = w.read(ctx)
	return w, nil
}

// List returns the list as it is. It is for before Run is called.
func (w *Watcher) List() List {
	list := w.list
	list.Plugins = slices.Clone(list.Plugins)
	return list
}

// Run calls changed with the list, at once and whenever it has changed, until ctx is done. It does not
// call while a call is under way; what changes meanwhile is seen after it.
func (w *Watcher) Run(ctx context.Context, changed func(List)) {
	changed(w.List())
	for w.wait(ctx) {
		had := map[string]Description{}
		for _, d := range w.list.Plugins {
			had[d.ID] = d
		}
		list := w.read(ctx)
		found := list.Plugins
		list.Plugins = nil
		for _, d := range found { // a plugin stays as it was whose files are bad and may be half written
			if before, known := had[d.ID]; d.Problem == nil || w.bad[d.Problem.Error()].reported {
				list.Plugins = append(list.Plugins, d)
			} else if known {
				list.Plugins = append(list.Plugins, before)
			}
		}
		if !reflect.DeepEqual(list, w.list) {
			w.list = list
			changed(w.List())
		}
	}
}

// read reads the directories, after it has made sure that no later change is missed.
func (w *Watcher) read(ctx context.Context) (list List) {
	w.covered = w.notify.cover(ctx, w.sources)
	var problems []error
	list.Plugins, problems = merge(w.good, w.sources)

	// Each problem is reported once, when it has lasted: a file may still be being written.
	bad := make(map[string]*problem, len(problems))
	for _, err := range problems {
		p, state := w.bad[err.Error()], stateOf(err)
		if p == nil || !p.reported && p.state != state {
			p = &problem{since: time.Now(), state: state}
		}
		e, wait := observe.Event(&observe.FileRejected{Err: err}), settleTime
		if errors.As(err, new(*directoryError)) { // which nobody is writing
			e, wait = &observe.DirectoryNotRead{Err: err}, 0
		} else if _, alone := Alone(err); alone {
			e = &observe.FileAlone{Err: err}
		}
		if !p.reported && time.Since(p.since) >= wait {
			p.reported = true
			w.observer.Observe(ctx, e)
		}
		bad[err.Error()] = p
	}
	w.bad = bad

	for _, s := range w.sources {
		i := slices.IndexFunc(problems, func(err error) bool {
			var of *directoryError
			return errors.As(err, &of) && of.path == s.dir
		})
		if i < 0 {
			delete(w.unread, s.dir)
		} else {
			list.Unread = append(list.Unread, problems[i])
		}
	}
	list.Complete = len(w.unread) == 0

	good := make(map[string]Description, len(list.Plugins))
	for _, d := range list.Plugins {
		if had, known := w.good[d.ID]; d.Problem == nil {
			good[d.ID] = d
		} else if known {
			good[d.ID] = had
		}
	}
	w.good = good
	return list
}

// wait returns when it is time to read again, after a series of events for instance; false
// when ctx is done.
func (w *Watcher) wait(ctx context.Context) bool {
	pause := rescan
	if !w.covered {
		pause = poll
	}
	for _, p := range w.bad {
		if !p.reported {
			pause = min(pause, time.Until(p.since.Add(settleTime)))
		}
	}
	due := time.NewTimer(max(pause, 0))
	defer due.Stop()
	var look <-chan time.Time
	if len(w.notify.missing) > 0 {
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		look = ticker.C
	}
	var first time.Time // of the series of events
	for {
		select {
		case <-due.C:
			return true
		case <-look:
			for _, dir := range w.notify.missing {
				if _, err := os.Stat(dir); err == nil {
					return true
				}
			}
		case <-w.notify.woken:
			if first.IsZero() {
				first = time.Now()
			}
			due.Reset(min(debounce, time.Until(first.Add(maxDebounce))))
		case <-ctx.Done():
			return false
		}
	}
}
