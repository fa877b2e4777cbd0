package registry

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// ways are the names of interest in directories, which are paths without links. In a directory whose set is nil every name is.
type ways map[string]map[string]bool

// waysTo returns what decides which files the directories hold: they themselves, their directories of modules, the
// directories on the way to them, and those on the ways from links in them to their targets. missing are the
// directories that are not there.
func waysTo(sources []source) (w ways, missing []string) {
	w = ways{}
	for _, s := range sources {
		dir := w.follow(s.dir)
		if dir == "" {
			missing = append(missing, s.dir)
			continue
		}
		for _, dir := range []string{dir, w.follow(filepath.Join(dir, Modules))} {
			if dir == "" { // there are no modules
				continue
			}
			w[dir] = nil
			entries, _ := os.ReadDir(dir) // an error is of the reading that follows
			for _, e := range entries {
				if e.Type()&fs.ModeSymlink != 0 {
					w.follow(filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	return w, missing
}

// follow adds the names on the way to path, links followed, and returns the path without links; "" if it leads
// nowhere.
func (w ways) follow(path string) string {
	whole, _ := walk(path, func(dir, name string) error {
		if set, known := w[dir]; !known {
			w[dir] = map[string]bool{name: true}
		} else if set != nil {
			set[name] = true
		}
		return nil
	})
	return whole
}

// maxLinks is how many links a path may have, as for Linux.
const maxLinks = 40

// walk goes from the root to path, links followed, and shows each directory with the name that is next. It returns the path
// without links, or the first error: that of show, or of a name that leads nowhere.
func walk(path string, show func(dir, name string) error) (string, error) {
	at, rest, links := "/", split(path), 0
	for len(rest) > 0 {
		if err := show(at, rest[0]); err != nil {
			return "", err
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
		info, err := os.Lstat(at)
		if err != nil {
			return "", regular.Cause(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if links++; links > maxLinks {
			err = syscall.ELOOP
		}
		if err != nil {
			return "", regular.Cause(err)
		}
		rest = append(split(target), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = "/"
		}
	}
	return at, nil
}

// split returns the names of a path.
func split(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(r rune) bool { return r == filepath.Separator })
}

// concerns reports whether a change of a path may be one of the files.
func (w ways) concerns(path string) bool {
	if _, is := w[path]; is {
		return true
	}
	names, is := w[filepath.Dir(path)]
	return is && (names == nil || names[filepath.Base(path)])
}
