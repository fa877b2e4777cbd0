package systemd

import (
	"math"
	"strconv"
	"strings"

	escape "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"github.com/opencontainers/cgroups/systemd"
)

// reader returns what a file of a cgroup holds, "" if it cannot be read.
type reader func(name string) string

// property is how systemd has the value of a file.
type property struct {
	since int // the version of systemd that has it
	of    func(read reader) []escape.Property
}

// The properties of files, by the file's cgroup v2 name, as runc sets them: systemd/v1.go and
// v2.go of github.com/opencontainers/cgroups, and systemd.resource-control(5) for io. A
// property is made of what the kernel shows after the write, under the kernel's name of the
// file, since the kernel may have rounded the value.
var (
	onV1 = map[string]property{
		"cpu.weight":      {0, number("CPUShares", "cpu.shares", 1)},
		"cpu.weight.nice": {0, number("CPUShares", "cpu.shares", 1)},
		"cpu.max":         {242, func(read reader) []escape.Property { return quota(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")) }},
		"memory.max":      {0, number("MemoryLimit", "memory.limit_in_bytes", 0)},
		"io.weight":       {0, number("BlockIOWeight", "blkio.weight", 1)},
		"io.bfq.weight":   {0, number("BlockIOWeight", "blkio.bfq.weight", 1)},
		"pids.max":        {0, number("TasksMax", "pids.max", 1)},
	}
	onV2 = map[string]property{
		// A weight of 0 is cpu.idle, from 252 on. Then cpu.weight holds 0, too.
		"cpu.idle":         {252, number("CPUWeight", "cpu.weight", 0)},
		"cpu.weight":       {0, number("CPUWeight", "cpu.weight", 1)},
		"cpu.weight.nice":  {0, number("CPUWeight", "cpu.weight", 1)},
		"cpu.max":          {242, quota2},
		"memory.min":       {240, number("MemoryMin", "memory.min", 0)},
		"memory.low":       {0, number("MemoryLow", "memory.low", 0)},
		"memory.high":      {0, number("MemoryHigh", "memory.high", 0)},
		"memory.max":       {0, number("MemoryMax", "memory.max", 0)},
		"memory.swap.max":  {0, number("MemorySwapMax", "memory.swap.max", 0)},
		"memory.zswap.max": {253, number("MemoryZSwapMax", "memory.zswap.max", 0)},
		"io.weight":        {0, ioWeight},
		"io.max":           {0, ioMax},
		"io.latency":       {240, ioLatency},
		"pids.max":         {0, number("TasksMax", "pids.max", 1)},
		"cpuset.cpus":      {244, list("AllowedCPUs", "cpuset.cpus")},
		"cpuset.mems":      {244, list("AllowedMemoryNodes", "cpuset.mems")},
	}
)

func table(version int) map[string]property {
	if version == 1 {
		return onV1
	}
	return onV2
}

// propertiesOf returns the properties that say what a file holds; none if this version of
// systemd has none, or none for this value.
func propertiesOf(version, systemdVersion int, name string, read reader) []escape.Property {
	p, ok := table(version)[name]
	if !ok || systemdVersion < p.since {
		return nil
	}
	return p.of(read)
}

func set(name string, value any) escape.Property {
	return escape.Property{Name: name, Value: dbus.MakeVariant(value)}
}

// noLimit is the smallest number that v1 shows for no limit of memory: the largest multiple
// of the page size.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

// integer reads a number of a file; infinity is systemd's name of max and -1.
func integer(text string) (n uint64, ok bool) {
	if text == "max" || text == "-1" {
		return math.MaxUint64, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if n >= noLimit {
		n = math.MaxUint64
	}
	return n, err == nil
}

// number is a property of one number, that of a file. systemd takes none below least: such a
// value stays in the file alone.
func number(name, file string, least uint64) func(reader) []escape.Property {
	return func(read reader) []escape.Property {
		n, ok := integer(read(file))
		if !ok || n < least {
			return nil
		}
		return []escape.Property{set(name, n)}
	}
}

func quota2(read reader) []escape.Property {
	q, period, _ := strings.Cut(read("cpu.max"), " ")
	return quota(q, period)
}

func quota(quota, period string) []escape.Property {
	q, ok := integer(quota)
	p, known := integer(period)
	if !ok || !known || p == 0 {
		return nil
	}
	perSecond := uint64(math.MaxUint64)
	if q != math.MaxUint64 {
		perSecond = perSecondOf(q, p)
	}
	return []escape.Property{set("CPUQuotaPeriodUSec", p), set("CPUQuotaPerSecUSec", perSecond)}
}

// perSecondOf is the quota in microseconds a second. systemd keeps whole percents of a CPU,
// which are 10 ms. Rounding is up, as runc does it.
func perSecondOf(quota, period uint64) uint64 {
	const step = 10_000
	return (quota*1_000_000/period + step - 1) / step * step
}

// RoundQuota returns the quota and the period, in microseconds, that the kernel has when
// systemd sets these, which are not 0. A quota that is not rounded would change with the next reload.
func RoundQuota(quota, period uint64) (uint64, uint64) {
	const (
		least = 1_000 // of the kernel's quota and period
		most  = 1_000_000
	)
	perSecond := perSecondOf(quota, period)
	// cgroup_cpu_adjust_period in systemd's src/core/cgroup.c
	period = min(max(period, least, least*1_000_000/perSecond), most)
	return max(perSecond*period/1_000_000, least), period
}

// list is a property of CPUs or memory nodes. An empty file is what the parent has.
func list(name, file string) func(reader) []escape.Property {
	return func(read reader) []escape.Property {
		text := read(file)
		bits, err := systemd.RangeToBits(text)
		if text == "" {
			bits, err = []byte{}, nil
		}
		if err != nil {
			return nil
		}
		return []escape.Property{set(name, bits)}
	}
}

// limit is a value for a device: systemd's type (st).
type limit struct {
	Device string
	Value  uint64
}

// device names MAJOR:MINOR as systemd wants it.
func device(number string) string { return "/dev/block/" + number }

// perDevice sets a property to those limits alone: an empty list takes back earlier ones.
func perDevice(name string, limits []limit) []escape.Property {
	properties := []escape.Property{set(name, []limit{})}
	if len(limits) > 0 {
		properties = append(properties, set(name, limits))
	}
	return properties
}

func ioWeight(read reader) (properties []escape.Property) {
	var devices []limit
	for line := range strings.Lines(read("io.weight")) {
		of, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, ok := integer(value)
		switch {
		case !ok:
		case of == "default":
			properties = append(properties, set("IOWeight", n))
		default:
			devices = append(devices, limit{device(of), n})
		}
	}
	return append(properties, perDevice("IODeviceWeight", devices)...)
}

func ioMax(read reader) (properties []escape.Property) {
	for _, p := range [][2]string{
		{"rbps", "IOReadBandwidthMax"}, {"wbps", "IOWriteBandwidthMax"}, {"riops", "IOReadIOPSMax"}, {"wiops", "IOWriteIOPSMax"},
	} {
		properties = append(properties, perDevice(p[1], keyed(read("io.max"), p[0]))...)
	}
	return properties
}

func ioLatency(read reader) []escape.Property {
	return perDevice("IODeviceLatencyTargetUSec", keyed(read("io.latency"), "target"))
}

// keyed returns the limits that have a key in the lines of a file.
func keyed(text, key string) (limits []limit) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			value, found := strings.CutPrefix(fields[i], key+"=")
			if n, ok := integer(value); found && ok && n != math.MaxUint64 {
				limits = append(limits, limit{device(fields[0]), n})
			}
		}
	}
	return limits
}
