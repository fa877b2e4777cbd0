package cgroup

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Get returns what a file of the group holds, for a plugin: one of those that
// Write takes, or of those that tell what the group uses, by its v2 name. On v1 it is put
// as v2 would put it. At most 64 KiB are read. The codes of its error are those of Read, and
// abi.Denied for a file that is not on the list.
func (f *FS) Get(group, file string) (value string, err error) {
	f.GetAll(group, []string{file}, func(v string, e error) { value, err = v, e })
	return value, err
}

// GetAll is Get for several files of a group, of which each is told in turn. It opens the
// group once.
func (f *FS) GetAll(group string, files []string, each func(value string, err error)) {
	rel, groupErr := clean(group)
	o := f.at(rel)
	defer o.close()
	for _, file := range files {
		value, err := "", groupErr
		if err == nil {
			value, err = o.getAny(file)
		}
		if err != nil {
			value, err = "", rules.Fail("read", group, file, "", err)
		}
		each(value, err)
	}
}

// getAny returns what a file of the group holds that Write takes, or that tells what the group uses.
func (o *opened) getAny(file string) (string, error) {
	x := rules.Statistic(file)
	if x == nil {
		x, err := rules.Lookup(file)
		if err != nil {
			return "", err
		}
		return o.read(x)
	}
	if o.fs.version == 1 && x.Name == "cpu.stat" {
		return o.cpuStat1()
	}
	return o.get(x)
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
