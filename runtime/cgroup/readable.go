package cgroup

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// readable is a file that a plugin may read besides those that it may write.
type readable struct {
	name string                                  // the cgroup v2 name
	v1   func(f *FS, rel string) (string, error) // what v1 has of it, as v2 would write it; nil if nothing
}

// readables is the allow-list. What v1 counts under other names than v2, as in
// memory.stat, has no equivalent.
var readables = []readable{
	{"cpu.stat", (*FS).cpuStat1},
	{"cpu.max", (*FS).cpuMax1},
	{"cpu.weight", (*FS).cpuWeight1},
	{"cpu.pressure", nil},
	{"cpuset.cpus", same("cpuset", "cpuset.cpus")},
	{"cpuset.cpus.effective", same("cpuset", "cpuset.effective_cpus")},
	{"cpuset.mems", same("cpuset", "cpuset.mems")},
	{"cpuset.mems.effective", same("cpuset", "cpuset.effective_mems")},
	{"memory.current", same("memory", "memory.usage_in_bytes")},
	{"memory.peak", same("memory", "memory.max_usage_in_bytes")},
	{"memory.max", (*FS).memoryMax1},
	{"memory.min", nil},
	{"memory.low", nil},
	{"memory.swap.current", nil},
	{"memory.swap.max", nil},
	{"memory.stat", nil},
	{"memory.events", nil},
	{"memory.pressure", nil},
	{"io.stat", nil},
	{"io.pressure", nil},
	{"pids.current", same("pids", "pids.current")},
	{"pids.max", same("pids", "pids.max")},
}

// readControllers are those of v1 that are read only.
var readControllers = []string{"cpuset", "memory", "pids"}

// Get returns what a file of the group holds, for a plugin: one of those that
// Write takes, or of those that tell what the group uses and is allowed, by its v2
// name. On v1 it is put as v2 would put it. At most 64 KiB are read. The codes of
// its error are those of Read, and abi.Denied for a file that is not on the list.
func (f *FS) Get(group, file string) (string, error) {
	for _, r := range readables {
		if r.name == file {
			v, err := f.read(group, r)
			if err != nil {
				return "", rules.Fail("read", group, file, "", err)
			}
			return v, nil
		}
	}
	return f.Read(group, file)
}

func (f *FS) read(group string, r readable) (string, error) {
	rel, err := clean(group)
	switch {
	case err != nil:
		return "", err
	case f.version == 2:
		return f.get(rel, &rules.File{Name: r.name})
	case r.v1 == nil:
		return "", rules.Reason(abi.Unsupported, "cgroup v1 has no such file")
	}
	return r.v1(f, rel)
}

// get1 reads a file of a v1 controller.
func (f *FS) get1(rel, controller, name string) (string, error) {
	return f.get(rel, &rules.File{Name: name, Controller: controller, V1: name})
}

// same is a v1 file that holds the same under another name.
func same(controller, name string) func(*FS, string) (string, error) {
	return func(f *FS, rel string) (string, error) { return f.get1(rel, controller, name) }
}

func (f *FS) cpuMax1(rel string) (string, error) {
	quota, err := f.get1(rel, "cpu", "cpu.cfs_quota_us")
	if err != nil {
		return "", err
	}
	period, err := f.get1(rel, "cpu", "cpu.cfs_period_us")
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(quota, "-") {
		quota = "max"
	}
	return quota + " " + period, nil
}

// Weight returns the cpu.weight of cgroup v2 for CPU shares, as runc does: shares of 2 to
// 262144 are weights of 1 to 10000.
func Weight(shares uint64) uint64 { return 1 + (max(shares, 2)-2)*9999/262142 }

func (f *FS) cpuWeight1(rel string) (string, error) {
	text, err := f.get1(rel, "cpu", "cpu.shares")
	if err != nil {
		return "", err
	}
	shares, err := strconv.ParseUint(text, 10, 64)
	if err != nil || shares < 2 {
		return "", rules.Reason(abi.Invalid, "cpu.shares holds %.32q", text)
	}
	return strconv.FormatUint(Weight(shares), 10), nil
}

// noLimit is the smallest memory limit that means none: cgroup v1 has the largest multiple
// of the page size.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

func (f *FS) memoryMax1(rel string) (string, error) {
	text, err := f.get1(rel, "memory", "memory.limit_in_bytes")
	if err != nil {
		return "", err
	}
	if bytes, err := strconv.ParseUint(text, 10, 64); err == nil && bytes >= noLimit {
		return "max", nil
	}
	return text, nil
}

// controllers returns the v1 controllers of both tables, each once.
func controllers() []string {
	names := slices.Clone(readControllers)
	seen := map[string]bool{"": true}
	for _, x := range rules.Files {
		if !seen[x.Controller] {
			seen[x.Controller] = true
			names = append(names, x.Controller)
		}
	}
	return names
}
