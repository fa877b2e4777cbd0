package cgroup

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The names of the files that the kernel ties to what CRI sets.
const (
	cpuIdle  = "cpu.idle"
	cpuBurst = "cpu.max.burst"
)

// maxBandwidth is the largest quota or burst in microseconds, about 203 days:
// MAX_BW in the kernel's kernel/sched/sched.h.
const maxBandwidth = 1<<44 - 1

// file is one file that a plugin may write.
type file struct {
	name       string // the cgroup v2 name, by which it goes everywhere
	controller string // of v1; empty if v1 has no such file
	v1         string // its name in v1
	parse      parser // what the value may be, and its unit
}

// files is the allow-list. Values and units are those of the kernel's
// Documentation/admin-guide/cgroup-v2.rst; a v1 file takes the same.
var files = []file{
	{cpuIdle, "cpu", "cpu.idle", integer(0, 1)},                     // 1: runs only when nobody else wants the CPU. Linux 5.15
	{cpuBurst, "cpu", "cpu.cfs_burst_us", integer(0, maxBandwidth)}, // µs, at most the quota unless there is none. Linux 5.14
	{"cpu.bvt_warp_ns", "cpu", "cpu.bvt_warp_ns", integer(-1, 2)},   // group identity, -1 lowest to 2 highest. Anolis OS and its kin
	{"memory.high", "", "", bytesOrMax},                             // bytes, or max
	{"io.latency", "", "", latency},                                 // MAJOR:MINOR target=µs, or target=max
}

// at returns the controller directory and file name in this version. It is
// unsupported where the version has no such file.
func (x *file) at(version int) (controller, name string, err error) {
	switch {
	case version == 2:
		return "", x.name, nil
	case x.controller == "":
		return "", "", reason(abi.Unsupported, "cgroup v1 has no such file")
	}
	return x.controller, x.v1, nil
}

// lookup finds a file by its v2 name.
func lookup(name string) (*file, error) {
	for i := range files {
		if files[i].name == name {
			return &files[i], nil
		}
	}
	return nil, reason(abi.Denied, "not a file that a plugin may name")
}

// controllers returns the v1 controllers of both tables, each once.
func controllers() []string {
	names := slices.Clone(readControllers)
	seen := map[string]bool{"": true}
	for _, x := range files {
		if !seen[x.controller] {
			seen[x.controller] = true
			names = append(names, x.controller)
		}
	}
	return names
}
