package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Dirs are the directories that plugins are read from, as absolute paths. An
// empty one is not read.
type Dirs struct {
	Plugins string // NN-name.wasm with or without NN-name.json, or NN-name.json of a hook server
	Hooks   string // Koordinator's hookserver.d
}

// Distinct is an error if both directories are one, which Open refuses.
func (d Dirs) Distinct() error {
	a, err1 := os.Stat(d.Plugins)
	b, err2 := os.Stat(d.Hooks)
	same := d.Plugins != "" && d.Hooks != "" && filepath.Clean(d.Plugins) == filepath.Clean(d.Hooks) // and may not be there yet
	if same || err1 == nil && err2 == nil && os.SameFile(a, b) {
		return fmt.Errorf("plugin-dir %s and hook-dir %s are one directory, where files have to follow the rules of one of them: name two, or an empty hook-dir", d.Plugins, d.Hooks)
	}
	return nil
}

// source is a directory of plugins. It reads a file X.json beside X.wasm as that module's.
type source struct {
	dir         string
	trust       trust                          // of JSON files, and of the directory
	parse       func([]byte) (settings, error) // a JSON file
	koordinator bool                           // it is hookserver.d
}

// registers reports whether a file may register a plugin. Koordinator's rule is that its name
// ends in the four letters json, with or without a dot.
func (s source) registers(name string) bool {
	if s.koordinator {
		return strings.HasSuffix(name, "json")
	}
	return filepath.Ext(name) == ".json" && !strings.HasPrefix(name, ".")
}

// sources returns the directories in the order in which they get an id that
// both want.
func (d Dirs) sources() (all []source) {
	if d.Plugins != "" {
		all = append(all, source{filepath.Clean(d.Plugins), pluginFiles, parsePlugin, false})
	}
	if d.Hooks != "" {
		all = append(all, source{filepath.Clean(d.Hooks), hookFiles, parseHookserver, true})
	}
	return all
}

// reading is what a directory holds at one moment.
type reading struct {
	found    []Description // with Problem where a file is bad
	problems []error       // of files that are no plugin's
	failed   error         // the directory itself cannot be read or trusted
}

// read reads the directory, and modules with sum. One that is not there holds nothing.
func (s source) read(sum func(path string) (string, error)) (r reading) {
	names, err := s.names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.failed = &directoryError{fileError{s.dir, err}}
	}
	for _, name := range names {
		var d Description
		var registered bool
		var problem error
		path, ext := filepath.Join(s.dir, name), filepath.Ext(name)
		switch {
		case ext == ".wasm" && !strings.HasPrefix(name, "."):
			m := settings{Description: Description{ID: id(path), File: path}}
			if slices.Contains(names, stem(name)+".json") {
				m = pluginFiles.readBeside(path)
			}
			registered = m.find(path, besideOf(path), sum)
			d = m.Description
		case s.registers(name) && !(ext == ".json" && slices.Contains(names, stem(name)+".wasm")):
			d, registered, problem = s.readJSON(path, sum)
		}
		if registered {
			r.found = append(r.found, d)
		}
		if problem != nil {
			r.problems = append(r.problems, problem)
		}
	}
	return r
}

// directoryError is what is wrong with a whole directory.
type directoryError struct{ fileError }

// Unread returns those of the errors of Read that are of whole directories, of whose plugins nothing
// is known; nil if there are none.
func Unread(problems []error) (err error) {
	for _, p := range problems {
		if errors.As(p, new(*directoryError)) {
			err = errors.Join(err, p)
		}
	}
	return err
}

// names returns the names of what is not a directory, sorted.
func (s source) names() ([]string, error) {
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
