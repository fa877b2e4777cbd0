package rules

import "github.com/wasmproxy/wasmproxy/abi"

// The names of the files that the kernel ties to what CRI sets.
const (
	CPUIdle  = "cpu.idle"
	CPUBurst = "cpu.max.burst"
)

// maxBandwidth is the largest quota or burst in microseconds, about 203 days:
// MAX_BW in the kernel's kernel/sched/sched.h.
const maxBandwidth = 1<<44 - 1

// File is one file that a plugin may write.
type File struct {
	Name       string // the cgroup v2 name, by which it goes everywhere
	Controller string // of v1; empty if v1 has no such file
	V1         string // its name in v1
	parse      parser // what the value may be, and its unit
}

// Files is the allow-list. Values and units are those of the kernel's
// Documentation/admin-guide/cgroup-v2.rst; a v1 file takes the same.
var Files = []File{
	{CPUIdle, "cpu", "cpu.idle", integer(0, 1)},                     // 1: runs only when nobody else wants the CPU. Linux 5.15
	{CPUBurst, "cpu", "cpu.cfs_burst_us", integer(0, maxBandwidth)}, // µs, at most the quota unless there is none. Linux 5.14
	{"cpu.bvt_warp_ns", "cpu", "cpu.bvt_warp_ns", integer(-1, 2)},   // group identity, -1 lowest to 2 highest. Anolis OS and its kin
	{"memory.high", "", "", bytesOrMax},                             // bytes, or max
	{"io.latency", "", "", latency},                                 // MAJOR:MINOR target=µs, or target=max
}

// At returns the controller directory and file name in this version. It is
// unsupported where the version has no such file.
func (x *File) At(version int) (controller, name string, err error) {
	switch {
	case version == 2:
		return "", x.Name, nil
	case x.Controller == "":
		return "", "", Reason(abi.Unsupported, "cgroup v1 has no such file")
	}
	return x.Controller, x.V1, nil
}

// Lookup finds a file by its v2 name.
func Lookup(name string) (*File, error) {
	for i := range Files {
		if Files[i].Name == name {
			return &Files[i], nil
		}
	}
	return nil, Reason(abi.Denied, "not a file that a plugin may name")
}
