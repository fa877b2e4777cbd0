// Package durable saves the key-value state of plugins that is to outlast the proxy, in a file for each plugin below state-dir. It
// does not decide which values these are: a plugin's manifest does.
package durable

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

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// saveDelay is how long a durable value may have changed before it is saved: a plugin that
// changes 1 MiB of them in each call costs less than a hundredth of a processor.
const saveDelay = 500 * time.Millisecond

const (
	subDir        = "kv" // in the state directory
	suffix        = ".json"
	temporary     = "new" // a file that takes the place of another when it is whole
	formatVersion = 1
	maxFile       = 2 << 20 // bytes of a file: plugin.MaxKV in base64, and the rest
)

// Store saves the durable values of plugins, in a file for each plugin, in the background: only Restore and Close wait for the
// disk. It is safe for concurrent use. Without a directory it saves nothing.
type Store struct {
	*workqueue.Saver
	observer observe.Observer
	stateDir string // "": nothing is saved

	mu      sync.Mutex
	plugins map[string]*savedPlugin // by id
	stay    map[string]bool         // the plugins whose files are not to be removed; nil: none is to be removed
	forgets int                     // counts calls of Forget
}

// savedPlugin is a plugin that may have a file.
type savedPlugin struct {
	values *plugin.KV
	saved  int // revision of the values in the file; -1: there is no file of the plugin yet. save writes it, under mu
}

// file is the content of a file.
type file struct {
	Version int     `json:"version"`
	Values  []value `json:"values"`
}

// value has bytes, since neither keys nor values need be UTF-8.
type value struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Open opens the directory of durable values, below the state directory, which exists. Without one, "", nothing is saved.
func Open(stateDir string, observer observe.Observer) (*Store, error) {
	s := &Store{observer: observer, stateDir: stateDir, plugins: map[string]*savedPlugin{}}
	s.Saver = workqueue.NewSaver(observer, saveDelay, s.save)
	if stateDir == "" {
		return s, nil
	}
	dir, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("state-dir %s: opening the directory %s: %w", stateDir, subDir, err)
	}
	return s, dir.Close()
}

// open opens the directory as it is now: somebody may have removed it.
func (s *Store) open() (*os.Root, error) {
	state, err := os.OpenRoot(s.stateDir)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if err := state.Mkdir(subDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return state.OpenRoot(subDir)
}

// Restore gives a plugin the values that were saved for it. A file that cannot be read is an event, and the plugin
// begins without values.
func (s *Store) Restore(ctx context.Context, id string, values *plugin.KV) {
	if s.stateDir == "" {
		return
	}
	s.mu.Lock()
	removed := s.stay != nil && !s.stay[id]
	s.mu.Unlock()
	if removed {
		return // the file is of the plugin that was there before
	}
	saved, err := s.read(id + suffix)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.observer.Observe(ctx, &observe.StateIgnored{File: subDir + "/" + id + suffix, Err: err})
		}
		return
	}
	s.drop(ctx, id, values.Restore(saved), "larger than the limits of kv")
}

func (s *Store) drop(ctx context.Context, id string, values int, reason string) {
	if values > 0 {
		s.observer.Observe(ctx, &observe.ValuesDropped{Plugin: id, Values: values, Reason: reason})
	}
}

func (s *Store) read(name string) (values map[string]string, err error) {
	dir, err := s.open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = fmt.Errorf("it is not a regular file of at most %d bytes", maxFile)
	}
	if err == nil {
		err = regular.Own(info, 0o022)
	}
	if err != nil {
		return nil, err
	}
	text, err := dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var content file
	switch err := json.Unmarshal(text, &content); {
	case err != nil:
		return nil, err
	case content.Version != formatVersion:
		return nil, regular.AnotherVersion(content.Version, formatVersion)
	}
	values = map[string]string{}
	for _, v := range content.Values {
		values[string(v.Key)] = string(v.Value)
	}
	return values, nil
}

// Keep saves the values of a plugin from now on, whose manifest has these prefixes.
func (s *Store) Keep(ctx context.Context, id string, values *plugin.KV, prefixes []string) {
	if s.stateDir == "" {
		return
	}
	changed := s.Notify
	if len(prefixes) == 0 {
		changed = nil
	}
	s.drop(ctx, id, values.SetDurable(prefixes, changed), "not durable by the plugin's manifest")
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plugins[id]; p == nil || p.values != values {
		s.plugins[id] = &savedPlugin{values: values, saved: -1}
	}
	s.Notify()
}

// Forget has the files removed of plugins that are not there any more. A plugin with such an ID that comes later begins
// without values.
func (s *Store) Forget(there map[string]bool) {
	if s.stateDir == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.plugins, func(id string, _ *savedPlugin) bool { return !there[id] })
	stay := maps.Clone(there)
	if s.stay != nil { // files are yet to be removed
		maps.DeleteFunc(stay, func(id string, _ bool) bool { return !s.stay[id] })
	}
	s.stay = stay
	s.forgets++
	s.Notify()
}

// save removes the files of plugins that are gone, and saves the values that have changed since they were last saved, as far as that
// can be done.
func (s *Store) save() (failed observe.Event) {
	dir, err := s.open()
	if err != nil {
		return &observe.StateNotSaved{File: subDir, Err: err}
	}
	defer dir.Close()
	s.mu.Lock()
	plugins, stay, forgets := maps.Clone(s.plugins), maps.Clone(s.stay), s.forgets
	s.mu.Unlock()
	if stay != nil {
		for id, p := range plugins {
			stay[id] = stay[id] || p.saved >= 0 // the file is of this plugin already
		}
		if err := remove(dir, stay); err != nil {
			failed = &observe.StateNotSaved{File: subDir, Err: err}
		}
		s.mu.Lock()
		if failed == nil && s.forgets == forgets {
			s.stay = nil
		}
		s.mu.Unlock()
	}
	for id, p := range plugins {
		saved := p.saved
		if _, err := dir.Lstat(id + suffix); err != nil { // somebody may have removed it
			saved = -1
		}
		values, revision := p.values.Durable(saved)
		if values == nil {
			continue
		}
		content := file{Version: formatVersion, Values: []value{}}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			content.Values = append(content.Values, value{[]byte(key), []byte(values[key])})
		}
		text, err := json.Marshal(content)
		if err == nil {
			err = dir.WriteFile(temporary, text, 0o600)
		}
		if err == nil {
			err = dir.Rename(temporary, id+suffix)
		}
		if err != nil {
			failed = &observe.StateNotSaved{File: subDir + "/" + id + suffix, Err: err}
			continue
		}
		s.mu.Lock()
		p.saved = revision
		s.mu.Unlock()
	}
	return failed
}

// remove removes all files but those of these plugins.
func remove(dir *os.Root, stay map[string]bool) error {
	files, err := fs.ReadDir(dir.FS(), ".")
	for _, f := range files {
		if id, ours := strings.CutSuffix(f.Name(), suffix); ours && !stay[id] {
			if failed := dir.Remove(f.Name()); !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// Close saves what has changed.
func (s *Store) Close() {
	if s.stateDir != "" {
		s.Save(context.Background())
	}
}
