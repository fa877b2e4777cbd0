package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// saveDelay is how long a durable value may have changed before it is saved: a plugin that
// changes 1 MiB of them in each call costs less than a hundredth of a processor.
const saveDelay = 500 * time.Millisecond

// saveAgain is how long after a failed save the next one is tried, without another change.
const saveAgain = 10 * time.Second

const (
	durableDir     = "kv" // in the state directory
	durableSuffix  = ".json"
	durableVersion = 1
	maxDurable     = 2 << 20 // bytes of a file: plugin.MaxKV in base64, and the rest
)

// durable saves the durable values of plugins, in a file for each plugin. It is safe for concurrent use. Without a directory it
// saves nothing.
type durable struct {
	observer observe.Observer
	dir      *os.Root // nil: nothing is saved
	changed  trigger

	mu      sync.Mutex              // no call waits for it
	plugins map[string]*savedPlugin // by id
}

// savedPlugin is a plugin of which there may be a file.
type savedPlugin struct {
	values *plugin.KV
	saved  int  // revision of the values in the file; -1: the file is to be written
	failed bool // the last write failed, and that was reported
}

// durableFile is the content of a file.
type durableFile struct {
	Version int            `json:"version"`
	Values  []durableValue `json:"values"`
}

// durableValue has bytes, since neither keys nor values need be UTF-8.
type durableValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// openDurable opens the directory of durable values, below the state directory, which exists.
func openDurable(c *config.Config, observer observe.Observer) (*durable, error) {
	d := &durable{observer: observer, changed: newTrigger(), plugins: map[string]*savedPlugin{}}
	if c.StateDir == "" {
		return d, nil
	}
	state, err := os.OpenRoot(c.StateDir)
	if err == nil {
		if err = state.Mkdir(durableDir, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
		if err == nil {
			d.dir, err = state.OpenRoot(durableDir)
		}
		err = errors.Join(err, state.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("state-dir %s: opening the directory %s: %w", c.StateDir, durableDir, err)
	}
	return d, nil
}

// restore gives a plugin the values that were saved for it. A file that cannot be read is an event, and the plugin
// begins without values.
func (d *durable) restore(ctx context.Context, id string, values *plugin.KV) {
	if d.dir == nil {
		return
	}
	saved, err := d.read(id + durableSuffix)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.observer.Observe(ctx, &observe.StateIgnored{File: durableDir + "/" + id + durableSuffix, Err: err})
		}
		return
	}
	d.drop(ctx, id, values.Restore(saved), "larger than the limits of kv")
}

func (d *durable) drop(ctx context.Context, id string, values int, reason string) {
	if values > 0 {
		d.observer.Observe(ctx, &observe.ValuesDropped{Plugin: id, Values: values, Reason: reason})
	}
}

func (d *durable) read(name string) (values map[string]string, err error) {
	info, err := d.dir.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxDurable) {
		err = fmt.Errorf("it is not a regular file of at most %d bytes", maxDurable)
	}
	if err == nil {
		err = regular.Own(info, 0o022)
	}
	if err != nil {
		return nil, err
	}
	text, err := d.dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file durableFile
	switch err := json.Unmarshal(text, &file); {
	case err != nil:
		return nil, err
	case file.Version != durableVersion:
		return nil, fmt.Errorf("its version is %d, and this version of wasmproxy reads %d", file.Version, durableVersion)
	}
	values = map[string]string{}
	for _, v := range file.Values {
		values[string(v.Key)] = string(v.Value)
	}
	return values, nil
}

// keep saves the values of a plugin from now on, whose manifest has these prefixes.
func (d *durable) keep(ctx context.Context, id string, values *plugin.KV, prefixes []string) {
	if d.dir == nil {
		return
	}
	changed := d.changed.notify
	if len(prefixes) == 0 {
		changed = nil
	}
	d.drop(ctx, id, values.SetDurable(prefixes, changed), "not durable by the plugin's manifest")
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.plugins[id]; p == nil || p.values != values {
		d.plugins[id] = &savedPlugin{values: values, saved: -1}
	}
	d.changed.notify()
}

// forget removes the files of plugins that are not there any more.
func (d *durable) forget(ctx context.Context, there map[string]bool) {
	if d.dir == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.plugins, func(id string, _ *savedPlugin) bool { return !there[id] })
	files, err := fs.ReadDir(d.dir.FS(), ".")
	for _, f := range files {
		if id, ours := strings.CutSuffix(f.Name(), durableSuffix); ours && !there[id] {
			err = errors.Join(err, d.write(id, nil))
		}
	}
	if err != nil {
		d.observer.Observe(ctx, &observe.StateNotSaved{File: durableDir, Err: err})
	}
}

// run saves values that have changed until ctx is done, and tries again if that failed.
func (d *durable) run(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-d.changed:
		case <-again:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(saveDelay):
			if again = nil; !d.save(ctx) {
				again = time.After(saveAgain)
			}
		case <-ctx.Done():
			return
		}
	}
}

// save saves the values that have changed since they were last saved. It reports whether all are saved.
func (d *durable) save(ctx context.Context) (all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all = true
	for id, p := range d.plugins {
		values, revision := p.values.Durable(p.saved)
		if values == nil {
			continue
		}
		err := d.write(id, values)
		if err == nil {
			p.saved = revision
		} else if all = false; !p.failed {
			d.observer.Observe(ctx, &observe.StateNotSaved{File: durableDir + "/" + id + durableSuffix, Err: err})
		}
		p.failed = err != nil
	}
	return all
}

// allSaved reports whether the last write of each file succeeded.
func (d *durable) allSaved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.plugins {
		if p.failed {
			return false
		}
	}
	return true
}

// write replaces a plugin's file, or removes it if values is nil.
func (d *durable) write(id string, values map[string]string) error {
	if values == nil {
		if err := d.dir.Remove(id + durableSuffix); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	file := durableFile{Version: durableVersion, Values: []durableValue{}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		file.Values = append(file.Values, durableValue{[]byte(key), []byte(values[key])})
	}
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	const temporary = "new"
	if err := d.dir.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return d.dir.Rename(temporary, id+durableSuffix)
}

// close saves what has changed, and releases the directory.
func (d *durable) close() error {
	if d.dir == nil {
		return nil
	}
	d.save(context.Background())
	return d.dir.Close()
}
