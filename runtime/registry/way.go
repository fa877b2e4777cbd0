package registry

import (
	"io/fs"
	"os"
	"path/filepath"
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
	at, rest, links := "/", split(path), 0
	for len(rest) > 0 {
		if set, known := w[at]; !known {
			w[at] = map[string]bool{rest[0]: true}
		} else if set != nil {
			set[rest[0]] = true
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return ""
		}
		rest = append(split(target), rest...)
		if filepath.IsAbs(target) {
			at = "/"
		}
	}
	return at
}

// concerns reports whether a change of a path may be one of the files.
func (w ways) concerns(path string) bool {
	if _, is := w[path]; is {
		return true
	}
	names, is := w[filepath.Dir(path)]
	return is && (names == nil || names[filepath.Base(path)])
}
