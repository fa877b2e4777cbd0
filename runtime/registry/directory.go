package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Dirs are the directories that plugins are read from, as absolute paths. An
// empty one is not read.
type Dirs struct {
	Plugins string // NN-name.wasm with or without NN-name.json, or NN-name.json of a hook server
	Hooks   string // Koordinator's hookserver.d
}

// source is a directory and how its files are read.
type source struct {
	dir   string
	trust trust
	read  func(dir string, names []string) ([]Description, []error)
}

// sources returns the directories in the order in which they get an id that
// both want.
func (d Dirs) sources() (all []source) {
	if d.Plugins != "" {
		all = append(all, source{filepath.Clean(d.Plugins), pluginFiles, readPluginDir})
	}
	if d.Hooks != "" {
		all = append(all, source{filepath.Clean(d.Hooks), hookFiles, readHookDir})
	}
	return all
}

// reading is what a directory holds at one moment.
type reading struct {
	dir      string
	found    []Description // with Problem where a file is bad
	problems []error       // of files that are no plugin's
	failed   error         // the directory itself cannot be read or trusted
}

// scan reads the directory. One that is not there holds nothing.
func (s source) scan() reading {
	r := reading{dir: s.dir}
	names, err := s.list()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.failed = &directoryError{fileError{s.dir, err}}
	default:
		r.found, r.problems = s.read(s.dir, names)
	}
	return r
}

// directoryError is what is wrong with a whole directory.
type directoryError struct{ fileError }

// list returns the names of what is not a directory, sorted.
func (s source) list() ([]string, error) {
	f, err := os.Open(s.dir)
	if err != nil {
		return nil, regular.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = s.trust.check(info)
	}
	if err == nil {
		err = s.trust.checkWay(s.dir)
	}
	if err != nil {
		return nil, regular.Cause(err)
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, regular.Cause(err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
