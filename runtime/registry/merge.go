package registry

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// List is what the directories hold at one moment. What is wrong with a file is in its plugin's description.
type List struct {
	// Plugins are in the order of ids, or of what stands for them, and hold each id once: with those that
	// are switched off, and those whose files are bad.
	Plugins []Description

	// Unread says which directories cannot be read or trusted. The plugins of Plugins that lie there are those that
	// were known.
	Unread []error

	// Complete reports whether each directory has been read at least once. A plugin that is not in a list which is
	// not complete may exist.
	Complete bool
}

// Read reads the directories once. The list is in the order of ids, or of what stands for them, holds
// each id once, with plugins that are switched off, whose modules are not looked at; the errors name what is wrong,
// including every Problem in the list. A directory that is not there holds no plugin.
func Read(dirs Dirs) ([]Description, []error) { return merge(nil, dirs.sources()) }

// merge reads the directories, and makes one list of what they hold. good are the last good descriptions,
// by id. An id that two files want is for the one that had it last, else for the first good one.
func merge(good map[string]Description, sources []source) (list []Description, problems []error) {
	wanted := map[string][]Description{}
	for _, s := range sources {
		r := s.read(now(pluginFiles))
		problems = append(problems, r.problems...)
		if r.failed != nil {
			problems = append(problems, r.failed)
			r.found = nil
			for _, d := range good { // as far as the plugins of the directory were known
				if filepath.Dir(d.File) == s.dir {
					r.found = append(r.found, Description{ID: d.ID, File: d.File, Module: d.Module, Problem: r.failed})
				}
			}
		}
		rest, without := unnamed(r.found, good)
		problems = append(problems, without...)
		for _, d := range rest {
			wanted[d.ID] = append(wanted[d.ID], d)
		}
	}
	for _, same := range wanted {
		d := slices.MaxFunc(same, func(a, b Description) int { return cmp.Compare(claim(a, good[a.ID]), claim(b, good[b.ID])) })
		for _, other := range same {
			if other.File != d.File && !other.Disabled {
				problems = append(problems, &fileError{other.File, fmt.Errorf("id %q is taken by %s; this file counts for nothing until that one goes", d.ID, plugin.Name(d.File))})
			}
		}
		if d.Problem != nil {
			d.Disabled = good[d.ID].Disabled
			if !errors.As(d.Problem, new(*directoryError)) { // which is among the problems
				problems = append(problems, d.Problem)
			}
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Order, a.ID), cmp.Or(b.Order, b.ID)), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return list, problems
}

// unnamed leaves out the modules that another file of the directory names: they are plugins by that
// file, also while it is bad or switched off. The problems are of JSON files beside them, which have no effect.
func unnamed(found []Description, good map[string]Description) (rest []Description, problems []error) {
	by := map[string]string{} // the path of a module: the name of a file that names it
	for _, d := range found {
		if had := good[d.ID]; d.Problem != nil && had.File == d.File {
			d = had
		}
		if d.Module != "" {
			by[filepath.Join(filepath.Dir(d.File), d.Module)] = plugin.Name(filepath.Base(d.File))
		}
	}
	for _, d := range found {
		first, named := by[d.File]
		if d.Module != "" || !named {
			rest = append(rest, d)
			continue
		}
		if d.Settings != "" {
			module := plugin.Name(filepath.Base(d.File))
			err := fmt.Errorf("describes no plugin: %s names %s as its wasm-module, which makes it a plugin by that file alone; remove the file, "+
				"or move the module to %s/%[2]s and name that in both files", first, module, Modules)
			problems = append(problems, &aloneError{d.ID, &fileError{besideOf(d.File), err}})
		}
	}
	return rest, problems
}

// claim ranks the descriptions that want one id: first that of the file that had it last, then a good one. A
// plugin that is switched off wants none.
func claim(d, had Description) int {
	own := d.File == had.File
	switch {
	case d.Disabled, own && d.Problem != nil && had.Disabled:
		return 0
	case own:
		return 3
	case d.Problem == nil:
		return 2
	}
	return 1
}
