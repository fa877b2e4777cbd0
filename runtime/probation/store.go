package probation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

const (
	fileName      = "probation.json" // in the data directory
	formatVersion = 1
	maxFile       = 4 << 20 // bytes: thousands of plugins
)

// Trials are those of the node's plugins, in a file of the data directory. They are safe for concurrent use. Changes are saved
// in the background, but for those that say so: who calls the others does not wait for a disk.
type Trials struct {
	*workqueue.Saver
	observer observe.Observer
	dir      string // "": nothing is saved

	mu      sync.Mutex
	all     map[string]*Trial // by ids of plugins
	running map[string]run    // by ids: of versions that are on probation, or were and did not pass
	failed  map[string]Counts // by ids: what such versions have done, which is not of the version before another one
	unknown bool              // what earlier processes have saved is lost: versions that are there count as passed
}

// run is that of a version on probation in this process.
type run struct {
	generation string
	from       Counts // of the plugin, when it became active
}

// file is the content of the file.
type file struct {
	Version int               `json:"version"`
	Trials  map[string]*Trial `json:"trials"`
}

// New returns no trials, which are saved in a directory; "": nowhere.
func New(dir string, observer observe.Observer) *Trials {
	t := &Trials{observer: observer, dir: dir, all: map[string]*Trial{}, running: map[string]run{}, failed: map[string]Counts{}}
	t.Saver = workqueue.NewSaver(observer, 0, t.save)
	return t
}

// Begin reads the trials, before they are used, and counts the start of this process in those that are open of what is to be
// loaded: a version that ends the proxy each time fails here, before it is loaded. That is saved. A file that cannot be read is
// an event, and there are no trials then.
func (t *Trials) Begin(ctx context.Context, loads []registry.Description) {
	if t.unknown = t.dir == ""; t.unknown {
		return
	}
	path := filepath.Join(t.dir, fileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	var saved file
	err := registry.CheckTrust(t.dir)
	if err == nil {
		err = regular.ReadState(path, maxFile, formatVersion, &saved)
	}
	if t.unknown = err != nil; t.unknown {
		t.observer.Observe(ctx, &observe.ProbationIgnored{Err: fmt.Errorf("%s: %w", path, err)})
		return
	}
	starts := map[string]string{} // by ids: generations
	for _, d := range loads {
		if d.Problem == nil && !d.Disabled {
			starts[d.ID] = d.Generation()
		}
	}
	for id, one := range saved.Trials {
		if one == nil {
			continue
		}
		if t.all[id] = one; !one.Open() {
			continue
		}
		if latest := time.Now().Add(one.For); one.Ends.After(latest) { // the clock was set back since
			one.Ends = latest
		}
		if starts[id] == one.Generation {
			one.Starts++
		}
		if one.Starts > maxStarts {
			t.Fail(ctx, id, one.Generation, fmt.Sprintf("the proxy was started %d times without an orderly stop", one.Starts))
		}
	}
	t.saveNow(ctx)
}

// Remove removes what Trials have saved in a directory, which may hold other things.
func Remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, fileName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Found takes the files as they are now, and what terms says of them, with a For of 0 of those without a probation. New
// trials are saved when Found returns, so that a version cannot end the proxy again and again. A file of another content ends
// the trial of the one before.
func (t *Trials) Found(ctx context.Context, list registry.List, terms func(registry.Description) Terms) {
	t.mu.Lock()
	there, changed := map[string]bool{}, false
	for i := range list.Plugins {
		d := &list.Plugins[i]
		there[d.ID] = true
		if d.Problem != nil || d.Disabled { // the trial goes on when the file is good, or enabled again
			continue
		}
		known := t.all[d.ID]
		if known != nil && known.Generation == d.Generation() {
			continue
		}
		delete(t.all, d.ID)
		changed = changed || known != nil
		if has := terms(*d); has.For > 0 {
			t.all[d.ID], changed = &Trial{Generation: d.Generation(), Terms: has, Passed: t.unknown}, true
		}
	}
	if list.Complete {
		t.unknown = false
		n := len(t.all)
		maps.DeleteFunc(t.all, func(id string, _ *Trial) bool { return !there[id] })
		changed = changed || len(t.all) < n
	}
	t.mu.Unlock()
	if changed {
		t.saveNow(ctx)
	}
}

// Get returns a copy of the trial of a plugin's files; nil if this generation of them has none.
func (t *Trials) Get(id, generation string) *Trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[id]
	if one == nil || one.Generation != generation {
		return nil
	}
	copied := *one
	return &copied
}

// Activate notes that the version has become active, with the plugin's counts. The first time, its probation begins: a trial that
// an earlier process began ends when that one said.
func (t *Trials) Activate(id, generation string, now Counts) {
	t.change(id, generation, func(one *Trial) {
		if t.running[id].generation != generation {
			t.settle(id, now)
			t.running[id], one.from = run{generation, now}, now
		}
		if one.Ends.IsZero() {
			one.Ends, one.Before = time.Now().Add(one.For), now.less(t.failed[id])
			t.Notify()
		}
	})
}

// Change gives the version's probation other terms, if it is not over. The length counts from when the probation began.
func (t *Trials) Change(id, generation string, to Terms) {
	t.change(id, generation, func(one *Trial) {
		if reflect.DeepEqual(one.Terms, to) {
			return
		}
		if !one.Ends.IsZero() {
			one.Ends = one.Ends.Add(to.For - one.For)
		}
		one.Terms = to
		t.Notify()
	})
}

// NotLoaded notes that the version cannot be loaded: it is not what ends the proxy.
func (t *Trials) NotLoaded(id, generation string) {
	t.change(id, generation, func(one *Trial) {
		one.Starts = 0
		t.Notify()
	})
}

// Settle notes that a version is active that is not on probation. What was counted of one that was on probation and did not pass
// is not of the version before the next one: counts, which is called in that case alone, gives the plugin's counts.
func (t *Trials) Settle(id string, counts func(id string) Counts) {
	t.mu.Lock()
	_, known := t.running[id]
	t.mu.Unlock()
	if !known {
		return
	}
	now := counts(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(id, now)
}

func (t *Trials) settle(id string, now Counts) {
	if last, known := t.running[id]; known {
		t.failed[id] = t.failed[id].plus(now.less(last.from))
		delete(t.running, id)
	}
}

// Removed notes that a plugin is gone, or switched off: its counts begin anew.
func (t *Trials) Removed(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, id)
	delete(t.failed, id)
}

// Pass notes that the version has passed, if it is on probation.
func (t *Trials) Pass(id, generation string) {
	t.change(id, generation, func(one *Trial) {
		one.Passed = true
		delete(t.running, id)
		t.Notify()
	})
}

// Fail notes that the version has failed, and tells of it.
func (t *Trials) Fail(ctx context.Context, id, generation, reason string) {
	if t.change(id, generation, func(one *Trial) { one.Failure = &Failure{Reason: reason, At: time.Now()} }) {
		t.Notify()
		t.observer.Observe(ctx, &observe.ProbationFailed{Plugin: id, Reason: reason})
	}
}

// change changes a trial that is open, and reports whether there is one.
func (t *Trials) change(id, generation string, how func(*Trial)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[id]
	if one == nil || one.Generation != generation || !one.Open() {
		return false
	}
	how(one)
	return true
}

// Retry has the version of a plugin that has failed loaded once more, with a new probation, and reports whether there is one.
// That is saved.
func (t *Trials) Retry(ctx context.Context, id string) bool {
	t.mu.Lock()
	one := t.all[id]
	failed := one != nil && one.Failure != nil
	if failed {
		t.all[id] = &Trial{Generation: one.Generation, Terms: one.Terms}
		if last, known := t.running[id]; known { // no other version was there to go back to
			t.running[id] = run{from: last.from}
		}
	}
	t.mu.Unlock()
	if failed {
		t.saveNow(ctx)
	}
	return failed
}

// Close notes that the process stops in order, and saves that.
func (t *Trials) Close(ctx context.Context) {
	t.mu.Lock()
	for _, one := range t.all {
		one.Starts = 0
	}
	empty := len(t.all) == 0
	t.mu.Unlock()
	if !empty {
		t.Save(ctx)
	}
}

// saveNow saves. If that fails, Run tries again.
func (t *Trials) saveNow(ctx context.Context) {
	if !t.Save(ctx) {
		t.Notify()
	}
}

// save writes the file.
func (t *Trials) save() (failed observe.Event) {
	if t.dir == "" {
		return nil
	}
	t.mu.Lock()
	text, err := json.MarshalIndent(file{formatVersion, t.all}, "", "  ")
	t.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(t.dir, 0o700)
	}
	if err == nil {
		err = regular.Replace(filepath.Join(t.dir, fileName), append(text, '\n'), 0o600)
	}
	if err != nil {
		return &observe.ProbationNotSaved{Err: err}
	}
	return nil
}
