// Package settings decides with which settings the proxy serves: those of its settings file, or the last good ones if the
// file cannot be used. While the proxy serves, it says what of the file is not active.
//
// It is not for reading values, which is package config, nor for keeping files, which is package lastgood.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Source is where settings are from. It is safe for concurrent use.
type Source struct {
	load func(config.File) (*config.Config, error)
	read func() config.File

	mu       sync.Mutex // held while a file is parsed, and never while one is written
	file     config.File
	active   *config.Config
	text     []byte
	lastGood bool
	since    time.Time
	refused  error       // why the file could not be used at the start; nil: it could
	judged   config.File // what was loaded last
	verdict  error       // of judged
	changed  bool        // judged has other settings than the active ones
}

// ErrNone says that there are no last good settings.
var ErrNone = errors.New("there are no last good settings")

// New reads a settings file. load makes settings of it, and of a File without a Path those without a file.
func New(read func() config.File, load func(config.File) (*config.Config, error)) *Source {
	return &Source{read: read, load: load, file: read(), since: time.Now()}
}

// Load activates the settings of the file.
func (s *Source) Load() (*config.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load(s.file)
	if err != nil {
		return nil, err
	}
	s.active, s.text, s.judged = c, s.file.Text, s.file
	return c, nil
}

// FallBack activates the last good settings, since those of the file cannot be used for this cause. The error says why
// there are none. root is the directory of the host's files, with the settings file among them.
func (s *Source) FallBack(cause error, root string) (*config.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file.Path == "" || s.lastGood { // nothing else is left
		return nil, ErrNone
	}
	path, err := filepath.Abs(s.file.Path)
	if err != nil {
		return nil, err
	}
	if inside, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(inside) { // by this name the proxy knows it
		path = filepath.Join("/", inside)
	}
	var dirs []string // that of the file comes first, if it can be told; the other one is that of a start without the file
	if written := dataDir.FindSubmatch(s.file.Text); written != nil {
		dirs = append(dirs, string(written[1]))
	}
	if dir := s.withoutFile(); dir != "" && !slices.Contains(dirs, dir) {
		dirs = append(dirs, dir)
	}
	var good *lastgood.Settings // those that were kept last
	var errs []error
	for _, dir := range dirs {
		kept, err := lastgood.ReadSettings(filepath.Join(root, dir), path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case good == nil || kept.Since.After(good.Since):
			good = &kept
		}
	}
	if good == nil && errs != nil {
		return nil, errors.Join(errs...)
	}
	if good == nil || s.file.Err == nil && bytes.Equal(good.Text, s.file.Text) { // which cannot be used
		return nil, ErrNone
	}
	c, err := s.load(config.File{Path: s.file.Path, Text: good.Text})
	if err != nil {
		return nil, err
	}
	s.active, s.text, s.since, s.lastGood, s.refused = c, good.Text, good.Since, true, cause
	s.judged, s.verdict = s.file, cause
	return c, nil
}

// Refused is why the file could not be used at the start; nil if it could.
func (s *Source) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// dataDir is a line of a settings file, which may be damaged elsewhere.
var dataDir = regexp.MustCompile(`(?m)^data-dir:[ \t]*["']?(/[^"'#\s]+)["']?[ \t]*(#.*)?$`)

// withoutFile is the data-dir of a start without the file.
func (s *Source) withoutFile() string {
	c, err := s.load(config.File{})
	if err != nil { // flags may need what the file says
		c = config.Default()
	}
	return c.DataDir
}

// Keep saves the active settings as the last good ones, in their data-dir. If that is named in the file, they are saved
// also where a start finds them that cannot read the file, if that directory exists. An empty data-dir keeps none.
// Settings that were kept before keep their time.
func (s *Source) Keep() error {
	s.mu.Lock()
	good, dir, standard := lastgood.Settings{Text: s.text, Since: s.since}, s.active.DataDir, s.withoutFile()
	file, lastGood := s.file.Path, s.lastGood
	s.mu.Unlock()
	if file == "" || lastGood || dir == "" {
		return nil
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	good.File = path
	dirs := []string{dir}
	if info, err := os.Stat(standard); standard != dir && err == nil && info.IsDir() {
		dirs = append(dirs, standard)
	}
	var errs []error
	for _, dir := range dirs {
		if kept, err := lastgood.ReadSettings(dir, path); err == nil && bytes.Equal(kept.Text, good.Text) {
			good.Since = kept.Since
			continue
		}
		store, err := lastgood.Open(dir)
		if err == nil {
			err = store.KeepSettings(good)
		}
		errs = append(errs, err)
	}
	s.mu.Lock()
	s.since = good.Since
	s.mu.Unlock()
	return errors.Join(errs...)
}

// State says what is active, and what of the settings file is not.
type State struct {
	status.Settings       // without Error
	Err             error // why the file, as it is now, cannot be used; nil: it can
}

// State reads the settings file. A nil Source has none.
func (s *Source) State() (state State) {
	if s == nil {
		return state
	}
	file := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	state.File, state.LastGood, state.Since = s.file.Path, s.lastGood, s.since
	switch {
	case file.Path == "", file.Err == nil && bytes.Equal(file.Text, s.text):
		return state
	case file.Err != nil:
		state.Err = file.Err
		return state
	case s.judged.Err != nil || !bytes.Equal(file.Text, s.judged.Text):
		c, err := s.load(file)
		s.judged, s.verdict, s.changed = file, err, err == nil && !reflect.DeepEqual(c, s.active)
	}
	state.Err, state.Changed = s.verdict, s.changed
	return state
}

// Meanwhile says which settings are active.
func (s *State) Meanwhile() string {
	which := "settings"
	if s.LastGood {
		which = "last good settings"
	}
	return fmt.Sprintf("the %s of %s are active", which, s.Since.UTC().Format(time.RFC3339))
}

// Problem says in one line why the settings file is not active; "" if it is, or could be.
func (s *State) Problem() string {
	if s.Err == nil {
		return ""
	}
	return fmt.Sprintf("the settings file cannot be used: %s; %s", strings.ReplaceAll(s.Err.Error(), "\n", "; "), s.Meanwhile())
}
