package settings

// row is a value that the plugin sets, with its file in both cgroup versions.
type row struct {
	pod, target, value string
	v2, v1             file
}

// file has no name in a version that has no such file, or whose kernel in the tests lacks it.
type file struct{ name, without, with string }

// table has every file that Debian's cloud kernel 6.1 has in version 2, or that version 1 has in
// the hierarchies of the tests' machine, for a pod and for a container. cpu.uclamp.*,
// cpu.bvt_warp_ns, memory.zswap.max, io.latency and io.prio.class are of other kernels;
// rdma.max and misc.max need a device. An idle group takes no weight, and two names of one
// file go to two pods. So do io.weight and io.bfq.weight, since systemd's IOWeight is both.
// The kernel refuses to empty a cpuset with processes, so cpuset.mems stays at the one node.
// memory.swap.max comes before memory.max: version 1 wants the limit with swap raised first.
// The container nice is never updated, so that in version 2 kubelet's cpuset is empty. The kernel
// refuses to empty it again, and the pod's list comes in its place.
var table = []row{
	{"fields", "main.field.cpu_quota", "30000", file{"cpu.max", "50000 100000", "30000 100000"}, file{"cpu/cpu.cfs_quota_us", "50000", "30000"}},
	{"fields", "main.field.cpu_shares", "256", file{"cpu.weight", "17", "35"}, file{"cpu/cpu.shares", "102", "256"}}, // as runc translates shares
	{"fields", "main.field.memory_limit", "50331648", file{"memory.max", "67108864", "50331648"}, file{"memory/memory.limit_in_bytes", "67108864", "50331648"}},
	{"fields", "main.unified.memory.high", "33554432", file{"memory.high", "max", "33554432"}, file{}},
	{"fields", "main.file.io.bfq.weight", "default 70", file{"io.bfq.weight", "default 100", "default 70"}, file{"blkio/blkio.bfq.weight", "100", "70"}},
	{"fields", "pod.file.cpu.weight.nice", "5", file{"cpu.weight.nice", "8", "5"}, file{}},
	{"fields", "pod.file.io.bfq.weight", "default 60", file{"io.bfq.weight", "default 100", "default 60"}, file{"blkio/blkio.bfq.weight", "100", "60"}},

	{"files", "main.file.cpu.weight", "200", file{"cpu.weight", "17", "200"}, file{"cpu/cpu.shares", "102", "2437"}},
	{"files", "main.file.cpu.max", "30000", file{"cpu.max", "50000 100000", "30000 100000"}, file{"cpu/cpu.cfs_quota_us", "50000", "30000"}},
	{"files", "main.file.cpu.max.burst", "10000", file{"cpu.max.burst", "0", "10000"}, file{"cpu/cpu.cfs_burst_us", "0", "10000"}},
	{"files", "main.file.memory.min", "4194304", file{"memory.min", "0", "4194304"}, file{}},
	{"files", "main.file.memory.low", "8388608", file{"memory.low", "0", "8388608"}, file{}},
	{"files", "main.file.memory.high", "41943040", file{"memory.high", "max", "41943040"}, file{}},
	{"files", "main.file.memory.swap.max", "4194304", file{"memory.swap.max", "0", "4194304"}, file{"memory/memory.memsw.limit_in_bytes", "67108864", "54525952"}},
	{"files", "main.file.memory.max", "50331648", file{"memory.max", "67108864", "50331648"}, file{"memory/memory.limit_in_bytes", "67108864", "50331648"}},
	{"files", "main.file.memory.swap.high", "2097152", file{"memory.swap.high", "max", "2097152"}, file{}},
	{"files", "main.file.memory.oom.group", "0", file{"memory.oom.group", "1", "0"}, file{}},
	{"files", "main.file.io.weight", "default 50", file{"io.weight", "default 100", "default 50"}, file{}},
	{"files", "main.file.io.max", "DEVICE wiops=1000", file{"io.max", "", "DEVICE rbps=max wbps=max riops=max wiops=1000"}, file{"blkio/blkio.throttle.write_iops_device", "", "DEVICE 1000"}},
	{"files", "main.file.pids.max", "70", file{"pids.max", "max", "70"}, file{"pids/pids.max", "max", "70"}},
	{"files", "main.file.cpuset.cpus", "0", file{"cpuset.cpus", "0-1", "0"}, file{"cpuset/cpuset.cpus", "0-1", "0"}},
	{"files", "main.file.cpuset.mems", "0", file{"cpuset.mems", "0", "0"}, file{"cpuset/cpuset.mems", "0", "0"}},
	{"files", "main.file.hugetlb.2MB.max", "4194304", file{"hugetlb.2MB.max", "0", "4194304"}, file{}},
	{"files", "main.file.hugetlb.2MB.rsvd.max", "4194304", file{"hugetlb.2MB.rsvd.max", "0", "4194304"}, file{}},

	{"files", "pod.file.cpu.weight", "150", file{"cpu.weight", "17", "150"}, file{"cpu/cpu.shares", "102", "1696"}},
	{"files", "pod.file.cpu.max.burst", "20000", file{"cpu.max.burst", "0", "20000"}, file{"cpu/cpu.cfs_burst_us", "0", "20000"}},
	{"files", "pod.file.memory.min", "4194304", file{"memory.min", "0", "4194304"}, file{}},
	{"files", "pod.file.memory.low", "8388608", file{"memory.low", "0", "8388608"}, file{}},
	{"files", "pod.file.memory.high", "62914560", file{"memory.high", "max", "62914560"}, file{}},
	{"files", "pod.file.memory.swap.high", "8388608", file{"memory.swap.high", "max", "8388608"}, file{}},
	{"files", "pod.file.memory.oom.group", "1", file{"memory.oom.group", "0", "1"}, file{}},
	{"files", "pod.file.io.weight", "default 40", file{"io.weight", "default 100", "default 40"}, file{}},
	{"files", "pod.file.io.max", "DEVICE wiops=2000", file{"io.max", "", "DEVICE rbps=max wbps=max riops=max wiops=2000"}, file{"blkio/blkio.throttle.write_iops_device", "", "DEVICE 2000"}},
	{"files", "pod.file.pids.max", "100", file{"pids.max", "max", "100"}, file{"pids/pids.max", "max", "100"}},

	{"idle", "main.file.cpu.idle", "1", file{"cpu.idle", "0", "1"}, file{"cpu/cpu.idle", "0", "1"}},
	{"idle", "nice.file.cpu.weight.nice", "5", file{"cpu.weight.nice", "8", "5"}, file{}},
	{"idle", "nice.file.cpuset.cpus", "0", file{"cpuset.cpus", "0-1", "0"}, file{}},
	{"idle", "pod.file.cpu.idle", "1", file{"cpu.idle", "0", "1"}, file{"cpu/cpu.idle", "0", "1"}},
}
