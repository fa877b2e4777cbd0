package registry

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Read reads the directories once. The list is in the order of ids, or of
// what stands for them, and holds each id once; the errors name what is wrong, including every Problem in the
// list. A directory that is not there holds no plugin.
func Read(dirs Dirs) ([]Description, []error) {
	return merge(nil, dirs.sources())
}

// Disabled reads the directories once, and returns the plugins that their files switch
// off, in the order of ids.
func Disabled(dirs Dirs) (list []Description) {
	for _, s := range dirs.sources() {
		for _, d := range s.read(unread).found {
			if d.Disabled {
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b Description) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// merge reads the directories, and makes one list of what they hold. Where a file is bad,
// what the previous list said of it stays. An id that two files want is for the
// one that has it, else for the first good one.
func merge(previous []Description, sources []source) (list []Description, problems []error) {
	had := byID(previous)
	wanted := map[string][]Description{}
	for _, s := range sources {
		r := s.read(digest)
		problems = append(problems, r.problems...)
		if r.failed != nil {
			problems = append(problems, r.failed)
			r.found = slices.DeleteFunc(slices.Clone(previous), func(d Description) bool { return filepath.Dir(d.File) != s.dir })
		}
		for _, d := range unnamed(r.found, had) {
			wanted[d.ID] = append(wanted[d.ID], d)
		}
	}
	for _, same := range wanted {
		d := slices.MaxFunc(same, func(a, b Description) int { return cmp.Compare(claim(a, had[a.ID]), claim(b, had[b.ID])) })
		for _, other := range same {
			if other.File != d.File {
				problems = append(problems, &fileError{other.File, fmt.Errorf("id %q is taken by %s; this file counts for nothing until that one goes", d.ID, plugin.Name(d.File))})
			}
		}
		if d.Problem != nil {
			problems = append(problems, d.Problem)
			d = keep(had[d.ID], d)
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Order, a.ID), cmp.Or(b.Order, b.ID)), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return list, problems
}

// unnamed leaves out plugins that are switched off, and the modules that another file of
// the directory names: they are plugins by that file, also while it is bad or switched off.
func unnamed(found []Description, had map[string]Description) (rest []Description) {
	named := map[string]bool{}
	for _, d := range found {
		if d.Problem != nil {
			d = keep(had[d.ID], d)
		}
		if d.Module != "" {
			named[filepath.Join(filepath.Dir(d.File), d.Module)] = true
		}
	}
	for _, d := range found {
		if !d.Disabled && (d.Module != "" || !named[d.File]) {
			rest = append(rest, d)
		}
	}
	return rest
}

func byID(list []Description) map[string]Description {
	m := make(map[string]Description, len(list))
	for _, d := range list {
		m[d.ID] = d
	}
	return m
}

// claim ranks the descriptions that want one id: first that of the file that has it already,
// whose last good content stays, then a good one.
func claim(d, had Description) int {
	switch {
	case d.File == had.File && (d.Problem == nil || had.Problem == nil):
		return 2
	case d.Problem == nil:
		return 1
	}
	return 0
}

// keep returns the description of the file that is bad now, if that was good before.
func keep(had, bad Description) Description {
	if had.File == bad.File && had.Problem == nil {
		return had
	}
	return bad
}
