package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Names in the plugin directory. The proxy reads nothing there that begins with a dot, but for modules that are named.
const (
	ownDir     = ".delivery" // what deliveries keep; its lock is held by the one that is under way
	recordFile = "record.json"
	stageDir   = "next" // files of the delivery that is under way, or of a killed one until the next begins
	staged     = ownDir + "/" + stageDir + "/plugins.d"
	scratch    = ownDir + "/" + stageDir + "/scratch"
)

// Directory is a plugin directory. Its methods are safe for concurrent use, also by several processes.
type Directory string

func (d Directory) path(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// record is what deliveries have brought.
type record struct {
	Plugins map[string]brought `json:"plugins"` // by id
	Modules []string           `json:"modules"` // digests of those that deliveries have written and not yet removed
}

// brought is a plugin's JSON file.
type brought struct {
	Owner string   `json:"owner"`
	Texts []string `json:"texts"` // digests of the content: the last delivery's, and until it has ended the one before

	Probation  string `json:"probation,omitempty"`  // of the first of Texts, as time.ParseDuration reads it; empty: it has none
	MaxRefused *int   `json:"maxRefused,omitempty"` // of the probation: percent of calls; nil: that is not judged
}

// Probation returns for how long a plugin is to be on probation, and how many percent of its calls it may refuse then, by the
// digest of its JSON file as it is now. The length is 0 if the delivery of that content has not asked for a probation, or no
// delivery has brought it: a file that was changed by hand has none.
func (d Directory) Probation(id, digest string) (length time.Duration, maxRefused *int) {
	r, err := d.record()
	one := r.Plugins[id]
	if err != nil || len(one.Texts) == 0 || one.Texts[0] != digest {
		return 0, nil
	}
	length, err = time.ParseDuration(one.Probation)
	if err != nil {
		return 0, nil
	}
	return length, one.MaxRefused
}

func (d Directory) record() (r record, err error) {
	text, err := os.ReadFile(d.path(ownDir, recordFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	for id, p := range r.Plugins {
		if len(p.Texts) == 0 {
			err = fmt.Errorf("plugin %q has no texts", id)
		}
	}
	if r.Plugins == nil {
		r.Plugins = map[string]brought{}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		const remedy = "if the file is damaged, remove it, and the JSON file of each plugin that a delivery has brought: the next one brings them again"
		return r, fmt.Errorf("reading whose plugins are whose: %s: %w; %s", d.path(ownDir, recordFile), err, remedy)
	}
	return r, nil
}

func (d Directory) save(r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return regular.Replace(d.path(ownDir, recordFile), append(text, '\n'), 0o644)
}

// rename puts a file into the place of another one, for good.
func (d Directory) rename(staged string, name ...string) error {
	path := d.path(name...)
	if err := os.Rename(staged, path); err != nil {
		return err
	}
	return regular.SyncDir(filepath.Dir(path))
}

// Owner returns whose delivery has brought a plugin; "" if none has.
func (d Directory) Owner(id string) (string, error) {
	r, err := d.record()
	return r.Plugins[id].Owner, err
}

// Edit calls edit while no other process that asks for the same changes files of the directory. It waits for its turn
// until ctx is done; others take milliseconds.
func (d Directory) Edit(ctx context.Context, edit func() error) error {
	unlock, err := regular.LockDir(ctx, string(d))
	if err != nil {
		return err
	}
	defer unlock()
	return edit()
}

// begin begins a delivery, which loads plugins: others wait until end is called, or ctx is done.
func (d Directory) begin(ctx context.Context) (end func(), err error) {
	if err := registry.CheckTrust(string(d)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(d.path(ownDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	unlock, err := regular.LockDir(ctx, d.path(ownDir))
	if err != nil {
		return nil, err
	}
	stage := d.path(ownDir, stageDir)
	if err := errors.Join(os.RemoveAll(stage), os.Mkdir(stage, 0o700)); err != nil {
		unlock()
		return nil, err
	}
	return func() { os.RemoveAll(stage); unlock() }, nil
}
