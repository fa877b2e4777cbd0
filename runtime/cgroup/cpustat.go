package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	stats "github.com/containerd/cgroups/v3/cgroup1/stats"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// exists also refuses a path that leaves the root, before the library, which
// opens plain paths, comes to it.
func (f *FS) exists(rel string) error {
	err := rules.Reason(abi.Unsupported, "no controller is mounted")
	for _, h := range f.dirs {
		fd, openErr := h.open(rel)
		if openErr == nil {
			return unix.Close(fd)
		}
		if err = openErr; !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return err
}

// cpuStat1 makes v2's cpu.stat of the statistics of v1. What the node does not account is
// zero. The library's statistics of cpuacct are left out: it reads those of each CPU, too.
func (o *opened) cpuStat1() (string, error) {
	usage, err := o.readFile("cpuacct", "cpuacct.usage", "")
	if err != nil { // the node does not account it, or there is no group
		if err := o.fs.exists(o.rel); err != nil {
			return "", err
		}
	}
	s := stats.Metrics{CPU: &stats.CPUStat{Throttling: &stats.Throttle{}}}
	if err := cgroup1.NewCpu(filepath.Clean(o.fs.path)).Stat("/"+o.rel, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	throttling := s.CPU.GetThrottling()
	return fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d",
		time.Duration(max(number(usage), 0)).Microseconds(), throttling.GetPeriods(), throttling.GetThrottledPeriods(),
		time.Duration(throttling.GetThrottledTime()).Microseconds()), nil
}
