package cgroup

import (
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
