package cgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// statistic is a file that a plugin may read but not write.
type statistic struct {
	name string                                  // the cgroup v2 name
	v1   func(f *FS, rel string) (string, error) // how v1 has it, as v2 would show it; nil if v1 has nothing like it
}

// statistics are the allow-list besides the files that plugins may write. v1 leaves out lines
// that it does not count.
var statistics = []statistic{
	{"cpu.stat", (*FS).cpuStat1},
	{"cpu.pressure", nil},
	{"cpuset.cpus.effective", same("cpuset", "cpuset.effective_cpus")},
	{"cpuset.mems.effective", same("cpuset", "cpuset.effective_mems")},
	{"memory.current", same("memory", "memory.usage_in_bytes")},
	{"memory.peak", same("memory", "memory.max_usage_in_bytes")},
	{"memory.stat", (*FS).memoryStat1},
	{"memory.events", (*FS).memoryEvents1},
	{"memory.swap.current", (*FS).swapCurrent1},
	{"memory.pressure", nil},
	{"io.stat", (*FS).ioStat1},
	{"io.pressure", nil},
	{"pids.current", same("pids", "pids.current")},
	{"pids.peak", same("pids", "pids.peak")},
	{"pids.events", same("pids", "pids.events")},
}

// Get returns what a file of the group holds, for a plugin: one of those that
// Write takes, or of those that tell what the group uses, by its v2 name. On v1 it is put
// as v2 would put it. At most 64 KiB are read. The codes of its error are those of Read, and
// abi.Denied for a file that is not on the list.
func (f *FS) Get(group, file string) (string, error) {
	at := slices.IndexFunc(statistics, func(s statistic) bool { return s.name == file })
	if at < 0 {
		return f.Read(group, file)
	}
	v, err := f.statistic(group, &statistics[at])
	if err != nil {
		return "", rules.Fail("read", group, file, "", err)
	}
	return v, nil
}

func (f *FS) statistic(group string, s *statistic) (string, error) {
	rel, err := clean(group)
	switch {
	case err != nil:
		return "", err
	case f.version == 2:
		return f.readFile(rel, "", s.name, "")
	case s.v1 == nil:
		return "", rules.Reason(abi.Unsupported, "cgroup v1 has no such file; it needs cgroup v2")
	}
	return s.v1(f, rel)
}

// same is a v1 file that holds the same under another name.
func same(controller, name string) func(*FS, string) (string, error) {
	return func(f *FS, rel string) (string, error) { return f.readFile(rel, controller, name, "") }
}

// memoryStats are the lines of v2's memory.stat that v1 has, with v1's names.
var memoryStats = map[string]string{
	"total_rss": "anon", "total_cache": "file", "total_shmem": "shmem", "total_mapped_file": "file_mapped", "total_dirty": "file_dirty",
	"total_writeback": "file_writeback", "total_swapcached": "swapcached", "total_rss_huge": "anon_thp", "total_inactive_anon": "inactive_anon",
	"total_active_anon": "active_anon", "total_inactive_file": "inactive_file", "total_active_file": "active_file",
	"total_unevictable": "unevictable", "total_pgfault": "pgfault", "total_pgmajfault": "pgmajfault",
	"total_workingset_refault_anon": "workingset_refault_anon", "total_workingset_refault_file": "workingset_refault_file",
}

func (f *FS) memoryStat1(rel string) (string, error) {
	text, err := f.readFile(rel, "memory", "memory.stat", "")
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		if v2, known := memoryStats[name]; known {
			b.WriteString(v2 + " " + value)
		}
	}
	return strings.TrimRight(b.String(), "\n"), err
}

// memoryEvents1 tells how often the limit was reached, and how many processes were killed.
func (f *FS) memoryEvents1(rel string) (string, error) {
	reached, err := f.readFile(rel, "memory", "memory.failcnt", "")
	if err != nil {
		return "", err
	}
	text, err := f.readFile(rel, "memory", "memory.oom_control", "")
	if _, kills, ok := strings.Cut(text, "oom_kill "); ok { // the last line
		return "max " + reached + "\noom_kill " + kills, err
	}
	return "max " + reached, err
}

// swapCurrent1 is the swap alone: v1 counts it together with memory.
func (f *FS) swapCurrent1(rel string) (string, error) {
	sum, err := f.readFile(rel, "memory", "memory.memsw.usage_in_bytes", "swap accounting")
	if err != nil {
		return "", err
	}
	memory, err := f.readFile(rel, "memory", "memory.usage_in_bytes", "")
	return strconv.FormatInt(max(number(sum)-number(memory), 0), 10), err
}

// ioCounts are the words of v2's io.stat by v1's.
var ioCounts = []struct{ v1, bytes, operations string }{{"Read", "rbytes", "rios"}, {"Write", "wbytes", "wios"}, {"Discard", "dbytes", "dios"}}

// ioStat1 counts what the group and those below it did. Its lines are a device each.
func (f *FS) ioStat1(rel string) (string, error) {
	bytes, err := f.readFile(rel, "blkio", "blkio.throttle.io_service_bytes_recursive", "")
	if err != nil {
		return "", err
	}
	operations, err := f.readFile(rel, "blkio", "blkio.throttle.io_serviced_recursive", "")
	var devices []string
	lines := map[string]map[string]string{} // by device, then by v2's word
	add := func(text string, v2 func(i int) string) {
		for line := range strings.Lines(text) {
			words := strings.Fields(line) // 8:0 Read 4096
			at := -1
			if len(words) == 3 {
				at = slices.IndexFunc(ioCounts[:], func(c struct{ v1, bytes, operations string }) bool { return c.v1 == words[1] })
			}
			if at < 0 {
				continue
			}
			if lines[words[0]] == nil {
				devices, lines[words[0]] = append(devices, words[0]), map[string]string{}
			}
			lines[words[0]][v2(at)] = words[2]
		}
	}
	add(bytes, func(i int) string { return ioCounts[i].bytes })
	add(operations, func(i int) string { return ioCounts[i].operations })
	for i, device := range devices {
		for _, word := range []string{"rbytes", "wbytes", "rios", "wios", "dbytes", "dios"} {
			devices[i] += fmt.Sprintf(" %s=%d", word, number(lines[device][word]))
		}
	}
	return strings.Join(devices, "\n"), err
}

// readControllers are those of v1 from which statistics come.
var readControllers = []string{"cpuset", "memory", "pids", "blkio", "cpuacct"}

// controllers returns the v1 controllers of both tables, each once.
func controllers() []string {
	names := slices.Clone(readControllers)
	for i := range rules.Files {
		if x := rules.Files[i].V1; x != nil && !slices.Contains(names, x.Controller) {
			names = append(names, x.Controller)
		}
	}
	return names
}
