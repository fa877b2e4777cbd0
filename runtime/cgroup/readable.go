package cgroup

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Get returns what a file of the group holds, for a plugin: one of those that
// Write takes, or of those that tell what the group uses, by its v2 name. On v1 it is put
// as v2 would put it. At most 64 KiB are read. The codes of its error are those of Read, and
// abi.Denied for a file that is not on the list.
func (g *Group) Get(file string) (value string, err error) {
	if err = g.wrong; err == nil {
		value, err = g.getAny(file)
	}
	if err != nil {
		return "", rules.Fail("read", g.path, file, "", err)
	}
	return value, nil
}

// Get is [Group.Get] of one file.
func (f *FS) Get(group, file string) (string, error) {
	g := f.Group(group)
	defer g.Close()
	return g.Get(file)
}

// getAny returns what a file of the group holds that Write takes, or that tells what the group uses.
func (g *Group) getAny(file string) (string, error) {
	x := rules.Statistic(file)
	if x == nil {
		x, err := rules.Lookup(file)
		if err != nil {
			return "", err
		}
		return g.read(x)
	}
	if g.fs.version == 1 && x.Name == "cpu.stat" {
		return g.cpuStat1()
	}
	return g.get(x)
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
