package rules

import (
	"strconv"
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
	Name      string      // the cgroup v2 name, by which it goes everywhere; <size> in it is a size of huge pages
	Size      string      // of huge pages, of a row that Find returned; empty if the name has none
	Pod       Ways        // to write it for a pod
	Container Ways        // to write it for a container
	Fields    []abi.Field // of LinuxContainerResources: those that runtimes write to this file
	Writers   string      // who else writes it, for people
	Same      string      // the file of which this one is another view; empty if there is none
	Idle      bool        // while cpu.idle is 1, the kernel shows another value and refuses this one
	Value     string      // the value's format, unit and range, for people
	Lines     bool        // the value may have several lines: one for each device or resource
	Needs     string      // the kernel that has it in cgroup v2, for people
	V1        *V1         // how cgroup v1 has it; nil if v1 has nothing like it
	parse     parser      // of one line
	same      same        // of one line; nil if the kernel shows what was written
	unset     string      // what takes the value of a device or resource away, of a file with Lines
	none      int64       // bytes that v2 shows where it means max; 0 if it shows max
}

// Files is the allow-list. Values and units are those of the kernel's
// Documentation/admin-guide/cgroup-v2.rst; on v1 they are translated. No file of the
// cgroup core (cgroup.procs, cgroup.kill, …) is on it, since those move and kill processes.
//
// Of a pod, cgroup_set writes no limit that kubelet sets or that a container's could exceed:
// kubelet's next update, or the container's next start, would fail. With a cpu.max.burst or
// cpu.idle of a pod, a resize of the pod may.
var Files = []File{
	{Name: "cpu.weight", Pod: both, Container: both, Fields: []abi.Field{abi.CPUShares}, Writers: "kubelet, runtime, systemd", Idle: true,
		Value: "1 to 10000", parse: integer(1, 10_000), Needs: "Linux 4.15", V1: cpuShares},
	{Name: "cpu.weight.nice", Pod: both, Container: both, Fields: []abi.Field{abi.CPUShares}, Writers: "kubelet, runtime, systemd", Idle: true, Same: "cpu.weight",
		Value: "-20 to 19", parse: integer(-20, 19), Needs: "Linux 4.15"},
	{Name: "cpu.max", Pod: Unified, Container: both, Fields: []abi.Field{abi.CPUQuota, abi.CPUPeriod}, Writers: "kubelet, runtime, systemd",
		Value: "QUOTA or QUOTA PERIOD in µs; QUOTA is 1000 to 17592186044415, or max; PERIOD is 1000 to 1000000", parse: bandwidth, same: withPeriod,
		Needs: "Linux 4.15 with CONFIG_CFS_BANDWIDTH", V1: cpuQuota},
	{Name: CPUBurst, Pod: both, Container: both,
		Value: "µs, 0 to 17592186044415, at most the quota", parse: integer(0, maxBandwidth), Needs: "Linux 5.14 with CONFIG_CFS_BANDWIDTH",
		V1: renamed("cpu.cfs_burst_us", "Linux 5.14 with CONFIG_CFS_BANDWIDTH")},
	// 1: runs only when nobody else wants the CPU
	{Name: CPUIdle, Pod: both, Container: both, Writers: "systemd",
		Value: "0 or 1", parse: integer(0, 1), Needs: "Linux 5.15", V1: renamed("cpu.idle", "Linux 5.15")},
	{Name: "cpu.uclamp.min", Pod: both, Container: both, Value: percentText, parse: percent, same: clamped,
		Needs: "Linux 5.4 with CONFIG_UCLAMP_TASK_GROUP", V1: renamed("cpu.uclamp.min", "Linux 5.4 with CONFIG_UCLAMP_TASK_GROUP")},
	{Name: "cpu.uclamp.max", Pod: both, Container: both, Value: percentText, parse: percent, same: clamped,
		Needs: "Linux 5.4 with CONFIG_UCLAMP_TASK_GROUP", V1: renamed("cpu.uclamp.max", "Linux 5.4 with CONFIG_UCLAMP_TASK_GROUP")},
	// Group identity, -1 lowest to 2 highest
	{Name: "cpu.bvt_warp_ns", Pod: both, Container: both,
		Value: "-1 to 2", parse: integer(-1, 2), Needs: "the kernel of Anolis OS or Alibaba Cloud Linux", V1: renamed("cpu.bvt_warp_ns", "the kernel of Anolis OS or Alibaba Cloud Linux")},

	{Name: "memory.min", Pod: both, Container: both, Writers: "kubelet, runtime, systemd", Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 4.18"},
	{Name: "memory.low", Pod: both, Container: both, Writers: "kubelet, runtime, systemd", Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 4.5"},
	{Name: "memory.high", Pod: both, Container: both, Writers: "kubelet, runtime, systemd", Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 4.5"},
	{Name: "memory.max", Pod: Unified, Container: both, Fields: []abi.Field{abi.MemoryLimit}, Writers: "kubelet, runtime, systemd",
		Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 4.5", V1: memoryLimit},
	{Name: "memory.swap.high", Pod: both, Container: both, Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 5.8 with CONFIG_SWAP"},
	{Name: "memory.swap.max", Pod: Unified, Container: both, Fields: []abi.Field{abi.MemorySwap}, Writers: "runtime, systemd",
		Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 4.5 with CONFIG_SWAP", V1: swapLimit},
	{Name: "memory.zswap.max", Pod: both, Container: both, Writers: "systemd", Value: bytesText, parse: bytesOrMax, same: inPages, Needs: "Linux 5.19 with CONFIG_ZSWAP"},
	{Name: "memory.oom.group", Pod: both, Container: both, Writers: "runtime, systemd", Value: "0 or 1", parse: integer(0, 1), Needs: "Linux 4.19"},

	{Name: "io.weight", Pod: both, Container: both, Writers: "runtime, systemd", Lines: true,
		Value: "default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 10000", parse: weight(10_000), same: weighed, unset: "default",
		Needs: "Linux 5.4 with CONFIG_BLK_CGROUP_IOCOST", V1: blkioWeight},
	{Name: "io.bfq.weight", Pod: both, Container: both, Writers: "runtime, systemd", Lines: true,
		Value: "default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 1000", parse: weight(1_000), same: weighed, unset: "default",
		Needs: "Linux 5.0 with CONFIG_BFQ_GROUP_IOSCHED", V1: bfqWeight},
	{Name: "io.max", Pod: both, Container: both, Writers: "runtime, systemd", Lines: true,
		Value: "MAJOR:MINOR and any of rbps=, wbps= (bytes a second), riops=, wiops= (operations a second); each 1 or more, or max",
		parse: keyed(device, one, ioKeys...), same: limited, unset: "rbps=max wbps=max riops=max wiops=max", Needs: "Linux 4.5 with CONFIG_BLK_DEV_THROTTLING", V1: throttle},
	{Name: "io.latency", Pod: both, Container: both, Writers: "systemd", Lines: true, Value: "MAJOR:MINOR target=MICROSECONDS, or target=max",
		parse: keyed(device, target, "target"), same: limited, unset: "target=max", Needs: "Linux 4.19 with CONFIG_BLK_CGROUP_IOLATENCY"},
	{Name: "io.prio.class", Pod: both, Container: both, Value: "no-change, promote-to-rt, restrict-to-be, idle or none-to-rt",
		parse: words("no-change", "promote-to-rt", "restrict-to-be", "idle", "none-to-rt"), Needs: "Linux 5.14 with CONFIG_BLK_CGROUP_IOPRIO",
		V1: renamed("blkio.prio.class", "Linux 5.14 with CONFIG_BLK_CGROUP_IOPRIO")},

	{Name: "pids.max", Pod: both, Container: both, Writers: "kubelet, runtime, systemd", Value: "0 to 4194304, or max", parse: orMax(0, maxPIDs),
		Needs: "Linux 4.5", V1: renamed("pids.max", "Linux 4.3")},
	{Name: "cpuset.cpus", Pod: Unified, Container: both, Fields: []abi.Field{abi.CpusetCpus}, Writers: "runtime, systemd",
		Value: "numbers and ranges such as 0-3,7", parse: list, same: sameNumbers, Needs: "Linux 5.0", V1: renamed("cpuset.cpus", "")},
	{Name: "cpuset.mems", Pod: Unified, Container: both, Fields: []abi.Field{abi.CpusetMems}, Writers: "runtime, systemd",
		Value: "numbers and ranges such as 0-1", parse: list, same: sameNumbers, Needs: "Linux 5.0", V1: renamed("cpuset.mems", "")},
	{Name: "hugetlb." + pageSize + ".max", Pod: Unified, Container: both, Fields: []abi.Field{abi.HugepageLimits}, Writers: "kubelet, runtime",
		Value: bytesText, parse: bytesOrMax, Needs: "Linux 5.6 with CONFIG_CGROUP_HUGETLB", V1: renamed("hugetlb."+pageSize+".limit_in_bytes", "CONFIG_CGROUP_HUGETLB")},
	{Name: "hugetlb." + pageSize + ".rsvd.max", Pod: Unified, Container: both, Fields: []abi.Field{abi.HugepageLimits}, Writers: "runtime",
		Value: bytesText, parse: bytesOrMax, Needs: "Linux 5.7 with CONFIG_CGROUP_HUGETLB",
		V1: renamed("hugetlb."+pageSize+".rsvd.limit_in_bytes", "Linux 5.7 with CONFIG_CGROUP_HUGETLB")},
	{Name: "rdma.max", Pod: both, Container: both, Writers: "runtime", Lines: true,
		Value: "DEVICE and any of hca_handle=, hca_object=; each 0 to 2147483647, or max", parse: keyed(name, handles, "hca_handle", "hca_object"), same: limited, unset: "hca_handle=max hca_object=max",
		Needs: "Linux 4.11 with CONFIG_CGROUP_RDMA", V1: renamed("rdma.max", "Linux 4.11 with CONFIG_CGROUP_RDMA")},
	{Name: "misc.max", Pod: both, Container: both, Lines: true, Value: "RESOURCE NUMBER or RESOURCE max", parse: pair(name, bytesOrMax), unset: "max",
		Needs: "Linux 5.13 with CONFIG_CGROUP_MISC", V1: renamed("misc.max", "Linux 5.13 with CONFIG_CGROUP_MISC")},
}

// ioKeys are the keys of io.max, in the order in which they are written and shown.
var ioKeys = []string{"rbps", "wbps", "riops", "wiops"}

// In reports whether the cgroup version has the file: the error is unsupported where it has
// none, and says what the file needs.
func (x *File) In(version int) error {
	if version == 1 && x.V1 == nil {
		return Reason(abi.Unsupported, "cgroup v1 has no such file; it needs cgroup v2 and %s", x.Needs)
	}
	return nil
}

// Read returns what the file of v2 means that shows a text.
func (x *File) Read(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && x.none != 0 && n >= x.none {
		return "max"
	}
	return text
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

// Find returns the row of a file's v2 name, of Files or Statistics; nil if there is none. A size of huge
// pages in the name is in the place of <size>.
func Find(name string) *File {
	listed, size := name, ""
	if parts := strings.Split(name, "."); parts[0] == "hugetlb" && len(parts) > 2 {
		size = parts[1]
		listed = strings.Replace(name, size, pageSize, 1)
	}
	for _, table := range [][]File{Files, Statistics} {
		for i := range table {
			switch x := &table[i]; {
			case x.Name != listed:
			case size == "":
				return x
			case IsPageSize(size):
				return x.sized(size)
			}
		}
	}
	return nil
}

// OtherView returns the file that shows the same value of the kernel in another unit; "" if
// there is none.
func OtherView(name string) string {
	for i := range Files {
		switch x := &Files[i]; {
		case x.Same == "":
		case x.Same == name:
			return x.Name
		case x.Name == name:
			return x.Same
		}
	}
	return ""
}

// Exact returns the kernel's file that holds exactly what this one shows rounded; of cpu.idle that
// of the weight, which the kernel forgets while the group is idle. It is "" if this one is exact.
func (x *File) Exact(version int) string {
	switch {
	case version == 1 && (x.V1 == cpuShares || x.Name == CPUIdle):
		return cpuShares.Names[0]
	case version == 2 && x.Name == CPUIdle:
		return "cpu.weight"
	case version == 2:
		return x.Same
	}
	return ""
}

// Lookup is Find, and an error for an unknown file, which is denied.
func Lookup(name string) (*File, error) {
	x := Find(name)
	if x == nil {
		return nil, unlisted(CgroupSet, abi.Container, nil)
	}
	return x, nil
}

// unlisted is the refusal of a file that may not be written in this way; x is its row,
// nil if it has none.
func unlisted(way Ways, o abi.Object, x *File) error {
	if x != nil && x.Container&way != 0 {
		return Reason(abi.Denied, "no plugin may write this file of a %s with %s, since the limits of a pod are kubelet's; write those of its containers", o, way)
	}
	var names []string
	for i := range Files {
		if Files[i].Ways(o)&way != 0 {
			names = append(names, Files[i].Name)
		}
	}
	return Reason(abi.Denied, "no plugin may write this file of a %s with %s, only %s", o, way, strings.Join(names, ", "))
}
