package registry

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// notifier reports by inotify that something in a directory, or on the way to it or to a file that a link in it
// leads to, has changed, and not what: the watcher reads everything. Its methods are for one goroutine.
type notifier struct {
	observer observe.Observer
	woken    chan struct{} // holds one token after any number of events
	inotify  *fsnotify.Watcher
	watched  map[string]fs.FileInfo // what was at the path when it was added
	wanted   atomic.Pointer[ways]   // what is watched for
	missing  []string               // directories that are not there
	warned   bool
}

// cover watches every directory that exists, and all on the ways to it and from its links, until ctx is done, and
// reports whether it could. The next call tries again.
func (n *notifier) cover(ctx context.Context, sources []source) bool {
	if n.inotify == nil {
		inotify, err := fsnotify.NewWatcher()
		if err != nil {
			n.warn(ctx, err, "")
			return false
		}
		n.inotify = inotify
		n.wanted.Store(&ways{})
		go n.listen(ctx, inotify)
	}
	all := false
	for range 3 { // a link may have changed just before what holds it was watched
		var wanted ways
		wanted, n.missing = waysTo(sources)
		if all && reflect.DeepEqual(wanted, *n.wanted.Load()) {
			break
		}
		n.wanted.Store(&wanted)
		all = n.watch(ctx, wanted)
	}
	n.warned = n.warned && !all
	return all
}

// watch watches these directories and no other, and reports whether it could.
func (n *notifier) watch(ctx context.Context, wanted ways) bool {
	all, list := true, n.inotify.WatchList()
	for dir := range n.watched {
		if _, still := wanted[dir]; !still {
			delete(n.watched, dir)
			_ = n.inotify.Remove(dir) // it may have gone
		}
	}
	for dir := range wanted {
		info, err := os.Stat(dir)
		// Another directory may be at the path by now, or inotify may have dropped it.
		if err != nil || os.SameFile(info, n.watched[dir]) && slices.Contains(list, dir) {
			continue
		}
		_ = n.inotify.Remove(dir) // it may not be watched at all
		if err := n.inotify.Add(dir); err != nil {
			n.warn(ctx, err, dir)
			all = false
			continue
		}
		n.watched[dir] = info
	}
	return all
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
		case event := <-inotify.Events:
			if !n.wanted.Load().concerns(filepath.Clean(event.Name)) {
				continue
			}
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
