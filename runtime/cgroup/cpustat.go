package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	stats "github.com/containerd/cgroups/v3/cgroup1/stats"

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
// zero. The library's statistics of cpuacct are left out: it reads those of each CPU, too.
func (f *FS) cpuStat1(rel string) (string, error) {
	usage, err := f.readFile(rel, "cpuacct", "cpuacct.usage", "")
	if err != nil { // the node does not account it, or there is no group
		if err := f.exists(rel); err != nil {
			return "", bare(err)
		}
	}
	s := stats.Metrics{CPU: &stats.CPUStat{Throttling: &stats.Throttle{}}}
	if err := cgroup1.NewCpu(filepath.Clean(f.path)).Stat("/"+rel, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	throttling := s.CPU.GetThrottling()
	return fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d",
		time.Duration(max(number(usage), 0)).Microseconds(), throttling.GetPeriods(), throttling.GetThrottledPeriods(),
		time.Duration(throttling.GetThrottledTime()).Microseconds()), nil
}
