package cgroupfs

import "path"

// counters are the files, by pattern, that tell what happened in a group and
// not what it is set to: they differ between any two runs of a pod.
var counters = []struct{ pattern, tells string }{
	{"tasks", "ids of threads"},
	{"cgroup.procs", "ids of processes"},
	{"cgroup.threads", "ids of threads"},
	{"cgroup.stat*", "how many groups there were"},
	{"*.current", "what is used"},
	{"*.peak", "the most that was used"},
	{"*.events", "how often a limit was met, and whether a group is populated"},
	{"*.events.local", "the same, without groups below"},
	{"*.numa_stat", "memory used by node"},
	{"io.stat", "I/O done"},
	{"cpuacct.*", "CPU time used"},
	{"cpu.stat*", "CPU time used and throttled"},
	{"*.pressure", "time stalled"},
	{"memory.*usage_in_bytes", "memory used"},
	{"memory.*failcnt", "how often a limit was met"},
	{"memory.stat", "memory used by kind"},
	{"memory.kmem.slabinfo", "kernel memory used by kind"},
	{"blkio.throttle.io_*", "I/O done"},
}

func counts(file string) bool {
	for _, c := range counters {
		if ok, _ := path.Match(c.pattern, file); ok {
			return true
		}
	}
	return false
}
