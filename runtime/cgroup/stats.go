package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Stats is what a group has used, with its children, since it was made. What
// the node does not account stays zero.
type Stats struct {
	CPU            time.Duration // CPU time
	Periods        uint64        // enforcement periods of the CPU quota that have passed
	ThrottledCount uint64        // periods in which the group ran out of quota
	Throttled      time.Duration // sum over CPUs of the time it waited for quota
	Memory         uint64        // bytes charged now, page cache included
	MemoryLimit    uint64        // bytes; math.MaxUint64 for none
	PIDs           uint64        // tasks now
}

// noLimit is the smallest memory limit that means none: cgroup v1 answers the
// largest multiple of the page size.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

// Stats reads the group's statistics. The code of its error is abi.NotFound if
// the group is not there.
func (f *FS) Stats(group string) (Stats, error) {
	rel, err := clean(group)
	if err == nil {
		err = f.exists(rel)
	}
	var s Stats
	switch {
	case err != nil:
	case f.version == 2:
		s, err = f.stats2(rel)
	default:
		s, err = f.stats1(rel)
	}
	if err != nil {
		return Stats{}, rules.Fail("stat", group, "", "", err)
	}
	return s, nil
}

// exists also refuses a path that leaves the root, before the library, which
// opens plain paths, comes to it.
func (f *FS) exists(rel string) error {
	err := rules.Reason(abi.Unsupported, "no controller is mounted")
	for _, dir := range f.dirs {
		if _, err = dir.Stat(rel); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (f *FS) stats2(rel string) (Stats, error) {
	m, err := cgroup2.Load("/"+rel, cgroup2.WithMountpoint(f.path))
	if err != nil {
		return Stats{}, err
	}
	v, err := m.StatFiltered(cgroup2.StatCPU | cgroup2.StatMemory | cgroup2.StatPids)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		CPU:            time.Duration(v.CPU.GetUsageUsec()) * time.Microsecond,
		Periods:        v.CPU.GetNrPeriods(),
		ThrottledCount: v.CPU.GetNrThrottled(),
		Throttled:      time.Duration(v.CPU.GetThrottledUsec()) * time.Microsecond,
		Memory:         v.Memory.GetUsage(),
		MemoryLimit:    limit(v.Memory.GetUsageLimit()),
		PIDs:           v.Pids.GetCurrent(),
	}, nil
}

func (f *FS) stats1(rel string) (Stats, error) {
	c, err := cgroup1.Load(cgroup1.StaticPath("/"+rel), cgroup1.WithHierarchy(f.subsystems))
	if errors.Is(err, cgroup1.ErrCgroupDeleted) {
		return Stats{}, rules.Reason(abi.NotFound, "%w", err)
	}
	if err != nil {
		return Stats{}, err
	}
	v, err := c.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		CPU:            time.Duration(v.CPU.GetUsage().GetTotal()),
		Periods:        v.CPU.GetThrottling().GetPeriods(),
		ThrottledCount: v.CPU.GetThrottling().GetThrottledPeriods(),
		Throttled:      time.Duration(v.CPU.GetThrottling().GetThrottledTime()),
		Memory:         v.Memory.GetUsage().GetUsage(),
		MemoryLimit:    limit(v.Memory.GetUsage().GetLimit()),
		PIDs:           v.Pids.GetCurrent(),
	}, nil
}

// subsystems are the v1 hierarchies beneath our own root; the library's own
// list comes from this process's mounts.
func (f *FS) subsystems() ([]cgroup1.Subsystem, error) {
	root := filepath.Clean(f.path)
	return []cgroup1.Subsystem{
		cgroup1.NewCpu(root),
		cgroup1.NewCpuacct(root),
		cgroup1.NewMemory(root, cgroup1.IgnoreModules("memsw", "kmem", "kmem.tcp")),
		cgroup1.NewPids(root),
	}, nil
}

func limit(bytes uint64) uint64 {
	if bytes >= noLimit {
		return math.MaxUint64
	}
	return bytes
}
