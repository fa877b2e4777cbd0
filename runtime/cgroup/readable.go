package cgroup

import (
	"os"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Get returns what a file of the group holds, for a plugin: one of those that
// Write takes, or of those that tell what the group uses, by its v2 name. On v1 it is put
// as v2 would put it. At most 64 KiB are read. The codes of its error are those of Read, and
// abi.Denied for a file that is not on the list.
func (f *FS) Get(group, file string) (string, error) {
	x := rules.Statistic(file)
	if x == nil {
		return f.Read(group, file)
	}
	v, err := f.statistic(group, x)
	if err != nil {
		return "", rules.Fail("read", group, file, "", err)
	}
	return v, nil
}

// GetAll is Get for several files of a group, of which each is told in turn. It opens the
// group once.
func (f *FS) GetAll(group string, files []string, each func(value string, err error)) {
	opened := &FS{version: f.version, dirs: map[string]*os.Root{}}
	defer opened.Close()
	for _, file := range files {
		if x := f.openFor(opened, group, file); x != nil {
			if v, err := opened.get(".", x); err == nil {
				each(v, nil)
				continue
			}
		}
		each(f.Get(group, file)) // it knows what to do, or why it failed
	}
}

// openFor opens the group's directory of a file's controller, and returns the file's row; nil if
// it takes more than to read the files of one controller.
func (f *FS) openFor(opened *FS, group, file string) *rules.File {
	x := rules.Statistic(file)
	if x == nil {
		x, _ = rules.Lookup(file)
	}
	if x == nil || suspendable(file) || f.version == 1 && (x.V1 == nil || x.Name == "cpu.stat") {
		return nil
	}
	controller := ""
	if f.version == 1 {
		controller = x.V1.Controller
	}
	if opened.dirs[controller] == nil {
		rel, err := clean(group)
		dir := f.dirs[controller]
		if err != nil || dir == nil {
			return nil
		}
		if opened.dirs[controller], err = dir.OpenRoot(rel); err != nil {
			delete(opened.dirs, controller)
			return nil
		}
	}
	return x
}

func (f *FS) statistic(group string, x *rules.File) (string, error) {
	rel, err := clean(group)
	if err != nil {
		return "", err
	}
	if f.version == 1 && x.Name == "cpu.stat" {
		return f.cpuStat1(rel)
	}
	return f.get(rel, x)
}

// controllers returns the v1 controllers of both tables, each once.
func controllers() []string {
	names := []string{"cpuacct"} // a part of cpu.stat
	for _, table := range [][]rules.File{rules.Files, rules.Statistics} {
		for i := range table {
			if x := table[i].V1; x != nil && !slices.Contains(names, x.Controller) {
				names = append(names, x.Controller)
			}
		}
	}
	return names
}
