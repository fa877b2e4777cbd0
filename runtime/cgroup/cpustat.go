package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

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

// cpuStat1 makes v2's cpu.stat of the statistics of v1. What the node does not account is
// zero.
func (f *FS) cpuStat1(rel string) (string, error) {
	if err := f.exists(rel); err != nil {
		return "", bare(err)
	}
	c, err := cgroup1.Load(cgroup1.StaticPath("/"+rel), cgroup1.WithHierarchy(f.subsystems))
	if errors.Is(err, cgroup1.ErrCgroupDeleted) {
		return "", rules.Reason(abi.NotFound, "%w", err)
	}
	if err != nil {
		return "", err
	}
	s, err := c.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		return "", err
	}
	throttling := s.CPU.GetThrottling()
	return fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d",
		time.Duration(s.CPU.GetUsage().GetTotal()).Microseconds(), throttling.GetPeriods(), throttling.GetThrottledPeriods(),
		time.Duration(throttling.GetThrottledTime()).Microseconds()), nil
}

// subsystems are the v1 hierarchies beneath our own root; the library's own
// list comes from this process's mounts.
func (f *FS) subsystems() ([]cgroup1.Subsystem, error) {
	root := filepath.Clean(f.path)
	return []cgroup1.Subsystem{cgroup1.NewCpu(root), cgroup1.NewCpuacct(root)}, nil
}
