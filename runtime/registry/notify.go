package registry

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// notifier reports by inotify that something in a directory has changed, and not what: the
// watcher reads everything. Its methods are for one goroutine.
type notifier struct {
	observer observe.Observer
	woken    chan struct{} // holds one token after any number of events
	inotify  *fsnotify.Watcher
	watched  map[string]fs.FileInfo // what was at the path when it was added
	missing  []string               // directories that are not there
	warned   bool
}

func newNotifier(observer observe.Observer) *notifier {
	return &notifier{observer: observer, woken: make(chan struct{}, 1), watched: map[string]fs.FileInfo{}}
}

// cover watches every directory that exists, until ctx is done, and reports whether it
// could. The next call tries again.
func (n *notifier) cover(ctx context.Context, sources []source) bool {
	n.missing = nil
	if n.inotify == nil {
		inotify, err := fsnotify.NewWatcher()
		if err != nil {
			n.warn(ctx, err, "")
			return false
		}
		n.inotify = inotify
		go n.listen(ctx, inotify)
	}
	all := true
	for _, s := range sources {
		info, err := os.Stat(s.dir)
		if err != nil {
			n.missing = append(n.missing, s.dir)
			continue
		}
		// Another directory may be at the path by now, or inotify may have dropped it.
		if os.SameFile(info, n.watched[s.dir]) && slices.Contains(n.inotify.WatchList(), s.dir) {
			continue
		}
		_ = n.inotify.Remove(s.dir) // it may not be watched at all
		if err := n.inotify.Add(s.dir); err != nil {
			n.warn(ctx, err, s.dir)
			all = false
			continue
		}
		n.watched[s.dir] = info
	}
	n.warned = n.warned && !all
	return all
}

// appeared reports whether a directory is there that was missing.
func (n *notifier) appeared() bool {
	return slices.ContainsFunc(n.missing, func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	})
}

func (n *notifier) warn(ctx context.Context, err error, dir string) {
	if !n.warned {
		n.warned = true
		n.observer.Observe(ctx, &observe.InotifyUnavailable{Dir: dir, Err: err})
	}
}

// listen turns events into tokens, at once: the kernel's queue must not fill up while files
// are read, and inotify may block its other methods until an error is received.
func (n *notifier) listen(ctx context.Context, inotify *fsnotify.Watcher) {
	defer inotify.Close()
	for {
		select {
		case <-inotify.Events:
		case err := <-inotify.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				n.observer.Observe(ctx, &observe.WatchFailed{Err: err})
			}
		case <-ctx.Done():
			return
		}
		select {
		case n.woken <- struct{}{}:
		default:
		}
	}
}
