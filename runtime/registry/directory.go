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
	there := err1 == nil && err2 == nil
	if same || there && os.SameFile(a, b) {
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

// files is how files of plugins are read.
type files struct {
	modules trust                                        // of modules, and of the JSON files beside them
	text    func(t trust, path string) ([]byte, error)   // a JSON file
	sum     func(path string) (digest string, err error) // a module
	trusted func(path string) error                      // whether a file may say what runs in the proxy: fewer may than register a process
}

// now reads the files as they are now. Who may have written modules decides what runs in the proxy.
func now(modules trust) files {
	text := func(t trust, path string) ([]byte, error) { return t.readAll(path, maxJSON) }
	return files{modules, text, modules.digest, modules.trusted}
}

// reading is what a directory holds at one moment.
type reading struct {
	found    []Description // with Problem where a file is bad
	problems []error       // of files that are no plugin's
	failed   error         // the directory itself cannot be read or trusted
}

// read reads the directory. One that is not there holds nothing.
func (s source) read(f files) (r reading) {
	names, err := s.names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.failed = &directoryError{fileError{s.dir, err}}
	}
	for _, name := range names {
		var d Description
		var registered bool
		var problem error
		path, ext := filepath.Join(s.dir, name), filepath.Ext(name)
		registers := ext == ".json" && !strings.HasPrefix(name, ".")
		if s.koordinator { // whose rule is that the name ends in the four letters json, with or without a dot
			registers = strings.HasSuffix(name, "json")
		}
		switch {
		case ext == ".wasm" && !strings.HasPrefix(name, "."):
			d, registered = f.readModule(path, slices.Contains(names, stem(name)+".json"))
		case registers && !(ext == ".json" && slices.Contains(names, stem(name)+".wasm")):
			d, registered, problem = s.readJSON(path, f)
		}
		if d.Problem != nil {
			d = Description{ID: d.ID, File: d.File, Module: d.Module, Problem: d.Problem}
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

// Restore returns the description of a plugin as its files were once: that of the file, with this text
// of its JSON, empty for a module without one, and a copy of its module with this digest, empty for a hook
// server or a plugin that is switched off. It has no shadow. The error says why the files are not those of a plugin.
func (d Dirs) Restore(file, text, digest, copied string) (Description, error) {
	sources := d.sources()
	i := slices.IndexFunc(sources, func(s source) bool { return s.dir == filepath.Dir(file) })
	if i < 0 {
		return Description{}, &fileError{file, errors.New("lies in none of the directories of plugins")}
	}
	then := files{
		text:    func(trust, string) ([]byte, error) { return []byte(text), nil },
		sum:     func(string) (string, error) { return digest, nil },
		trusted: func(string) error { return nil },
	}
	var is Description
	registered, problem := true, error(nil)
	if filepath.Ext(file) == ".wasm" {
		is, registered = then.readModule(file, text != "")
	} else {
		is, registered, problem = sources[i].readJSON(file, then)
	}
	switch {
	case problem != nil:
		return is, problem
	case is.Problem != nil:
		return is, is.Problem
	case !registered:
		return is, &fileError{file, errors.New("describes no plugin")}
	}
	is.Copy, is.Shadow = copied, nil // there is no copy of its module
	return is, nil
}

// directoryError is what is wrong with a whole directory.
type directoryError struct{ fileError }

// names returns the names of what may be files of plugins, sorted. Koordinator passes over directories.
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
		if !s.koordinator || !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
