package cgroup

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// exists reports why a group is not there; nil if a controller has it. It refuses a path that
// leaves the root.
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

// cpuStat1 makes v2's cpu.stat of two controllers of v1. What the node does not account is zero.
func (g *Group) cpuStat1() (string, error) {
	usage, noUsage := g.readFile("cpuacct", "cpuacct.usage", "")
	throttling, noThrottling := g.readFile("cpu", "cpu.stat", "")
	switch {
	case noUsage != nil && noThrottling != nil: // the node does not account it, or there is no group
		if err := g.fs.exists(g.rel); err != nil {
			return "", err
		}
	case noThrottling != nil && !absent(noThrottling):
		return "", noThrottling
	}
	micros := func(nanos int64) string { return strconv.FormatInt(max(nanos, 0)/1000, 10) }
	periods, throttled, throttledTime := "0", "0", "0"
	for line := range strings.SplitSeq(throttling, "\n") {
		switch name, value, _ := strings.Cut(line, " "); name {
		case "nr_periods":
			periods = value
		case "nr_throttled":
			throttled = value
		case "throttled_time":
			throttledTime = micros(number(value))
		}
	}
	return "usage_usec " + micros(number(usage)) + "\nnr_periods " + periods + "\nnr_throttled " + throttled + "\nthrottled_usec " + throttledTime, nil
}
