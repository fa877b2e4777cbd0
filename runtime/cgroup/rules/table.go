package rules

import (
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The names of the files that the kernel ties to what CRI sets.
const (
	CPUIdle  = "cpu.idle"
	CPUBurst = "cpu.max.burst"
)

// Ways are the ways by which a plugin may write a file.
type Ways uint8

// The ways.
const (
	CgroupSet Ways = 1 << iota // the host function cgroup_set
	Unified                    // a key of CRI's map unified, on cgroup v2
)

const both = CgroupSet | Unified

// String names the ways as ABI.md does.
func (w Ways) String() string {
	return [...]string{"", "cgroup_set", "unified", "cgroup_set, unified"}[w&both]
}

// pageSize stands in a name for a size of huge pages, such as 2MB.
const pageSize = "<size>"

// File is a cgroup file that a plugin may write.
type File struct {
	Name       string      // the cgroup v2 name, by which it goes everywhere; <size> in it is a size of huge pages
	Pod        Ways        // to write it for a pod
	Container  Ways        // to write it for a container
	Controller string      // of v1; empty if v1 has no such file
	V1         string      // its name in v1
	Fields     []abi.Field // of LinuxContainerResources: those that runtimes write to this file
	Same       string      // the file of which this one is another view; empty if there is none
	Value      string      // the value's format, unit and range, for people
	Lines      bool        // the value may have several lines: one for each device or resource
	parse      parser      // of one line
}

// Files is the allow-list. Values and units are those of the kernel's
// Documentation/admin-guide/cgroup-v2.rst; a v1 file takes the same. No file of the
// cgroup core (cgroup.procs, cgroup.kill, …) is on it, since those move and kill processes.
var Files = []File{
	{Name: "cpu.weight", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.CPUShares}, Value: "1 to 10000", parse: integer(1, 10_000)},
	{Name: "cpu.weight.nice", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.CPUShares}, Same: "cpu.weight", Value: "-20 to 19", parse: integer(-20, 19)},
	{Name: "cpu.max", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.CPUQuota, abi.CPUPeriod},
		Value: "QUOTA or QUOTA PERIOD in µs; QUOTA is 1000 to 17592186044415, or max; PERIOD is 1000 to 1000000", parse: bandwidth},
	// At most the quota unless there is none. Linux 5.14
	{Name: CPUBurst, Pod: both, Container: both, Controller: "cpu", V1: "cpu.cfs_burst_us", Value: "µs, 0 to 17592186044415, at most the quota", parse: integer(0, maxBandwidth)},
	// 1: runs only when nobody else wants the CPU. Linux 5.15
	{Name: CPUIdle, Pod: both, Container: both, Controller: "cpu", V1: "cpu.idle", Value: "0 or 1", parse: integer(0, 1)},
	{Name: "cpu.uclamp.min", Pod: Unified, Container: Unified, Value: "percent, 0 to 100 with up to two decimals, or max", parse: percent},
	{Name: "cpu.uclamp.max", Pod: Unified, Container: Unified, Value: "percent, 0 to 100 with up to two decimals, or max", parse: percent},
	// Group identity, -1 lowest to 2 highest. Anolis OS and its kin
	{Name: "cpu.bvt_warp_ns", Pod: both, Container: both, Controller: "cpu", V1: "cpu.bvt_warp_ns", Value: "-1 to 2", parse: integer(-1, 2)},

	{Name: "memory.min", Pod: Unified, Container: Unified, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.low", Pod: Unified, Container: Unified, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.high", Pod: both, Container: both, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.max", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.MemoryLimit}, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.swap.high", Pod: Unified, Container: Unified, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.swap.max", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.MemorySwap}, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.zswap.max", Pod: Unified, Container: Unified, Value: bytesText, parse: bytesOrMax},
	{Name: "memory.oom.group", Pod: Unified, Container: Unified, Value: "0 or 1", parse: integer(0, 1)},

	{Name: "io.weight", Pod: Unified, Container: Unified, Lines: true, Value: "default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 10000", parse: weight(10_000)},
	{Name: "io.bfq.weight", Pod: Unified, Container: Unified, Lines: true, Value: "default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 1000", parse: weight(1_000)},
	{Name: "io.max", Pod: Unified, Container: Unified, Lines: true, Value: "MAJOR:MINOR and any of rbps=, wbps= (bytes a second), riops=, wiops= (operations a second); each 1 or more, or max",
		parse: keyed(device, one, "rbps", "wbps", "riops", "wiops")},
	{Name: "io.latency", Pod: both, Container: both, Lines: true, Value: "MAJOR:MINOR target=MICROSECONDS, or target=max", parse: keyed(device, target, "target")},
	{Name: "io.prio.class", Pod: Unified, Container: Unified, Value: "no-change, promote-to-rt, restrict-to-be, idle or none-to-rt",
		parse: words("no-change", "promote-to-rt", "restrict-to-be", "idle", "none-to-rt")},

	{Name: "pids.max", Pod: Unified, Container: Unified, Value: "0 to 4194304, or max", parse: orMax(0, maxPIDs)},
	{Name: "cpuset.cpus", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.CpusetCpus}, Value: "numbers and ranges such as 0-3,7", parse: list},
	{Name: "cpuset.mems", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.CpusetMems}, Value: "numbers and ranges such as 0-1", parse: list},
	{Name: "hugetlb." + pageSize + ".max", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.HugepageLimits}, Value: bytesText, parse: bytesOrMax},
	{Name: "hugetlb." + pageSize + ".rsvd.max", Pod: Unified, Container: Unified, Fields: []abi.Field{abi.HugepageLimits}, Value: bytesText, parse: bytesOrMax},
	{Name: "rdma.max", Pod: Unified, Container: Unified, Lines: true, Value: "DEVICE and any of hca_handle=, hca_object=; each 0 to 2147483647, or max", parse: keyed(name, handles, "hca_handle", "hca_object")},
	{Name: "misc.max", Pod: Unified, Container: Unified, Lines: true, Value: "RESOURCE NUMBER or RESOURCE max", parse: resource},
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

// Ways are those by which the file of a pod or container may be written.
func (x *File) Ways(o abi.Object) Ways {
	switch o {
	case abi.Pod:
		return x.Pod
	case abi.Container:
		return x.Container
	}
	return 0
}

// Find returns the row of a file's v2 name, nil if there is none. size is the size of
// huge pages that the name has in it, if it has one.
func Find(name string) (x *File, size string) {
	for i := range Files {
		x := &Files[i]
		before, after, sized := strings.Cut(x.Name, pageSize)
		if !sized {
			if x.Name == name {
				return x, ""
			}
			continue
		}
		if rest, ok := strings.CutPrefix(name, before); ok {
			if size, ok := strings.CutSuffix(rest, after); ok && IsPageSize(size) {
				return x, size
			}
		}
	}
	return nil, ""
}

// Lookup finds a file that cgroup_set writes, of a pod or a container, by its v2 name.
func Lookup(name string) (*File, error) {
	x, _ := Find(name)
	if x == nil || (x.Pod|x.Container)&CgroupSet == 0 {
		return nil, unlisted(CgroupSet, abi.Container, x)
	}
	return x, nil
}

// unlisted is the refusal of a file that may not be written in this way; x is its row,
// nil if it has none.
func unlisted(way Ways, o abi.Object, x *File) error {
	var names []string
	for i := range Files {
		if Files[i].Ways(o)&way != 0 {
			names = append(names, Files[i].Name)
		}
	}
	other := ""
	if x != nil && x.Ways(o)&^way != 0 {
		other = "; it can be set with " + (x.Ways(o) &^ way).String()
	}
	return Reason(abi.Denied, "no plugin may write this file of a %s with %s, only %s%s", o, way, strings.Join(names, ", "), other)
}
