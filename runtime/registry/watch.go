package registry

import (
	"context"
	"errors"
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
	rescan      = 10 * time.Second       // without an event: for targets of links, and events that inotify lost
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
	list     []Description
	bad      map[string]*problem // by their texts
}

// problem is one that was reported, or will be if it lasts.
type problem struct {
	since    time.Time
	state    string // of the file, until it is reported
	reported bool
}

// Open reads the directories and watches them until ctx is done. A directory
// that is not there is made, with mode 0755, and else waited for. What is wrong
// with a file goes to the observer, not into the error.
func Open(ctx context.Context, observer observe.Observer, dirs Dirs) (*Watcher, error) {
	w := &Watcher{observer: observer, sources: dirs.sources(), notify: newNotifier(observer), unread: map[string]bool{}}
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

// Descriptions returns the list as it is. It is for before Run is called.
func (w *Watcher) Descriptions() []Description { return slices.Clone(w.list) }

// Complete reports whether the list has been read from every directory at least once. A plugin
// that is not in a list which is not complete may exist. It is for changed, and before Run
// is called.
func (w *Watcher) Complete() bool { return len(w.unread) == 0 }

// Run calls changed with the list, at once and whenever its content has changed or it is
// complete, until ctx is done. It does not call while a call is under way; what changes
// meanwhile is seen after it.
func (w *Watcher) Run(ctx context.Context, changed func([]Description)) {
	changed(w.Descriptions())
	for w.wait(ctx) {
		had, complete := byID(w.list), w.Complete()
		list := slices.DeleteFunc(w.read(ctx), func(d Description) bool {
			_, known := had[d.ID]
			return !known && d.Problem != nil && !w.bad[d.Problem.Error()].reported
		})
		if complete != w.Complete() || !reflect.DeepEqual(list, w.list) {
			w.list = list
			changed(w.Descriptions())
		}
	}
}

// read reads the directories, after it has made sure that no later change is missed.
func (w *Watcher) read(ctx context.Context) []Description {
	w.covered = w.notify.cover(ctx, w.sources)
	list, problems := merge(w.list, w.sources)
	w.report(ctx, problems)
	for _, s := range w.sources {
		unread := func(err error) bool {
			var of *directoryError
			return errors.As(err, &of) && of.path == s.dir
		}
		if !slices.ContainsFunc(problems, unread) {
			delete(w.unread, s.dir)
		}
	}
	return list
}

// report reports each problem once, when it has lasted: a file may still be being written.
func (w *Watcher) report(ctx context.Context, problems []error) {
	bad := make(map[string]*problem, len(problems))
	for _, err := range problems {
		p, state := w.bad[err.Error()], stateOf(err)
		if p == nil || !p.reported && p.state != state {
			p = &problem{since: time.Now(), state: state}
		}
		if e, wait := refusal(err); !p.reported && time.Since(p.since) >= wait {
			p.reported = true
			w.observer.Observe(ctx, e)
		}
		bad[err.Error()] = p
	}
	w.bad = bad
}

// refusal says what a problem means, and how long it must last. Nobody is writing a
// directory.
func refusal(err error) (e observe.Event, wait time.Duration) {
	if errors.As(err, new(*directoryError)) {
		return &observe.DirectoryNotRead{Err: err}, 0
	}
	if _, alone := Alone(err); alone {
		return &observe.FileAlone{Err: err}, settleTime
	}
	return &observe.FileRejected{Err: err}, settleTime
}

// wait returns when it is time to read again, after a series of events for instance; false
// when ctx is done.
func (w *Watcher) wait(ctx context.Context) bool {
	due := time.NewTimer(w.pause())
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
			if w.notify.appeared() {
				return true
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

// pause is how long to wait without an event.
func (w *Watcher) pause() time.Duration {
	pause := rescan
	if !w.covered {
		pause = poll
	}
	for _, p := range w.bad {
		if !p.reported {
			pause = min(pause, time.Until(p.since.Add(settleTime)))
		}
	}
	return max(pause, 0)
}
