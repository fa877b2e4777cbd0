package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Statistics are the files that plugins may read but not write. In v1's form of v2's text, lines
// are left out that v1 does not count.
var Statistics = []File{
	{Name: "cpu.stat", Value: "time used and throttled, in µs", Needs: "Linux 4.15", V1: cpuStat},
	{Name: "cpu.pressure", Value: pressure, Needs: "Linux 4.20 with CONFIG_PSI"},
	{Name: "cpuset.cpus.effective", Value: "the CPUs in use", Needs: "Linux 5.0", V1: renamed("cpuset.effective_cpus", "")},
	{Name: "cpuset.mems.effective", Value: "the memory nodes in use", Needs: "Linux 5.0", V1: renamed("cpuset.effective_mems", "")},
	{Name: "memory.current", Value: "bytes", Needs: "Linux 4.5", V1: renamed("memory.usage_in_bytes", "")},
	{Name: "memory.peak", Value: "bytes", Needs: "Linux 5.19", V1: renamed("memory.max_usage_in_bytes", "")},
	{Name: "memory.stat", Value: "bytes and events by kind", Needs: "Linux 4.5", V1: memoryStat},
	{Name: "memory.events", Value: "how often limits were reached", Needs: "Linux 4.5", V1: memoryEvents},
	{Name: "memory.swap.current", Value: "bytes", Needs: "Linux 4.5 with CONFIG_SWAP", V1: swapCurrent},
	{Name: "memory.pressure", Value: pressure, Needs: "Linux 4.20 with CONFIG_PSI"},
	{Name: "io.stat", Value: "bytes and operations by device", Needs: "Linux 4.5", V1: ioStat},
	{Name: "io.pressure", Value: pressure, Needs: "Linux 4.20 with CONFIG_PSI"},
	{Name: "pids.current", Value: "processes and threads", Needs: "Linux 4.5", V1: renamed("pids.current", "Linux 4.3")},
	{Name: "pids.peak", Value: "processes and threads", Needs: "Linux 6.1", V1: renamed("pids.peak", "Linux 6.1")},
	{Name: "pids.events", Value: "how often the limit was reached", Needs: "Linux 4.9", V1: renamed("pids.events", "Linux 4.9")},
}

const pressure = "the time that processes stalled, in percent and µs"

// cpuStat is in two controllers. What the node does not account is zero.
var cpuStat = &V1{
	Names: []string{"cpu.stat", "cpuacct.usage"}, Optional: []string{"cpu.stat", "cpuacct.usage"},
	Read: func(held Held) (string, error) {
		counts := map[string]string{"usage": held["cpuacct.usage"]}
		for line := range strings.SplitSeq(held["cpu.stat"], "\n") {
			name, value, _ := strings.Cut(line, " ")
			counts[name] = value
		}
		micros := func(name string) int64 { n, _ := strconv.ParseInt(counts[name], 10, 64); return n / 1000 }
		return fmt.Sprintf("usage_usec %d\nnr_periods %s\nnr_throttled %s\nthrottled_usec %d", micros("usage"),
			cmp.Or(counts["nr_periods"], "0"), cmp.Or(counts["nr_throttled"], "0"), micros("throttled_time")), nil
	},
}

// memoryStats are the lines of v2's memory.stat that v1 has, by v1's names.
var memoryStats = map[string]string{
	"total_rss": "anon", "total_cache": "file", "total_shmem": "shmem", "total_mapped_file": "file_mapped", "total_dirty": "file_dirty",
	"total_writeback": "file_writeback", "total_swapcached": "swapcached", "total_rss_huge": "anon_thp", "total_inactive_anon": "inactive_anon",
	"total_active_anon": "active_anon", "total_inactive_file": "inactive_file", "total_active_file": "active_file",
	"total_unevictable": "unevictable", "total_pgfault": "pgfault", "total_pgmajfault": "pgmajfault",
	"total_workingset_refault_anon": "workingset_refault_anon", "total_workingset_refault_file": "workingset_refault_file",
}

var memoryStat = &V1{
	Names: []string{"memory.stat"},
	Read: func(held Held) (string, error) {
		var lines []string
		for line := range strings.SplitSeq(held["memory.stat"], "\n") {
			name, value, _ := strings.Cut(line, " ")
			if v2, known := memoryStats[name]; known {
				lines = append(lines, v2+" "+value)
			}
		}
		return strings.Join(lines, "\n"), nil
	},
}

// memoryEvents are how often the limit was reached, and how many processes were killed.
var memoryEvents = &V1{
	Names: []string{"memory.failcnt", "memory.oom_control"},
	Read: func(held Held) (string, error) {
		events := "max " + held["memory.failcnt"]
		if _, kills, ok := strings.Cut(held["memory.oom_control"], "oom_kill "); ok {
			events += "\noom_kill " + kills
		}
		return events, nil
	},
}

// swapCurrent is the swap alone: v1 counts it together with memory.
var swapCurrent = &V1{
	Names: []string{"memory.memsw.usage_in_bytes", "memory.usage_in_bytes"}, Needs: "swap accounting",
	Read: func(held Held) (string, error) {
		sum, err := held.number("memory.memsw.usage_in_bytes")
		if err != nil {
			return "", err
		}
		memory, err := held.number("memory.usage_in_bytes")
		return strconv.FormatInt(max(sum-memory, 0), 10), err
	},
}

var ioFiles = []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"}

// ioStat counts what a group and those below it did.
var ioStat = &V1{
	Names: ioFiles,
	Needs: "CONFIG_BLK_DEV_THROTTLING",
	Read: func(held Held) (string, error) {
		var devices []string
		counts := map[string]string{} // by "DEVICE WORD=" with v2's word
		for i, words := range []map[string]string{
			{"Read": "rbytes", "Write": "wbytes", "Discard": "dbytes"}, {"Read": "rios", "Write": "wios", "Discard": "dios"},
		} {
			for line := range strings.SplitSeq(held[ioFiles[i]], "\n") {
				parts := strings.Fields(line) // 8:0 Read 4096
				if len(parts) != 3 || words[parts[1]] == "" {
					continue
				}
				if !slices.Contains(devices, parts[0]) {
					devices = append(devices, parts[0])
				}
				counts[parts[0]+" "+words[parts[1]]] = parts[2]
			}
		}
		for i, device := range devices {
			for _, word := range []string{"rbytes", "wbytes", "rios", "wios", "dbytes", "dios"} {
				devices[i] += " " + word + "=" + cmp.Or(counts[device+" "+word], "0")
			}
		}
		return strings.Join(devices, "\n"), nil
	},
}
