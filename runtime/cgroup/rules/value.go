package rules

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Bounds of a value. The longest line that a file of the table takes is far shorter, and
// no node has as many block devices that a plugin would name.
const (
	MaxValue = 128 // bytes of one line
	MaxLines = 64
)

const (
	// maxBandwidth is the largest quota or burst in microseconds, about 203 days:
	// MAX_BW in the kernel's kernel/sched/sched.h.
	maxBandwidth = 1<<44 - 1
	maxPIDs      = 4 << 20 // PID_MAX_LIMIT in the kernel's include/linux/threads.h
)

// parser turns one line that a plugin gave into the one spelling that is written.
type parser func(line string) (string, bool)

// Parse is that of [Set] for one file, which the cgroup version is known to have.
func (x *File) Parse(value string) (string, error) {
	if x.parse == nil { // one of Statistics
		return "", unlisted(CgroupSet, abi.Container, x)
	}
	lines, want := []string{value}, x.Value
	if x.Lines {
		lines, want = strings.SplitN(strings.TrimSpace(value), "\n", MaxLines+1), x.Value+"; one line for each device or resource"
	}
	if len(lines) > MaxLines {
		return "", Reason(abi.TooLarge, "more than %d lines", MaxLines)
	}
	given := map[string]bool{} // settings of devices and resources
	for i, line := range lines {
		if len(line) > MaxValue {
			return "", Reason(abi.TooLarge, "a line of %d bytes, the limit is %d", len(line), MaxValue)
		}
		v, ok := x.parse(strings.TrimSpace(line))
		if !ok {
			return "", Reason(abi.Invalid, "want %s", want)
		}
		lines[i] = v
		of, settings, _ := strings.Cut(v, " ")
		for setting := range strings.FieldsSeq(settings) {
			key, _, keyed := strings.Cut(setting, "=")
			if !keyed {
				key = "value"
			}
			if given[of+" "+key] { // the kernel would keep the last one, and the file never look as it is wanted
				return "", Reason(abi.Invalid, "two lines set the %s of %s; leave one of them", key, of)
			}
			given[of+" "+key] = true
		}
	}
	return strings.Join(lines, "\n"), nil
}

func integer(low, high int64) parser {
	return func(value string) (string, bool) {
		n, err := strconv.ParseInt(value, 10, 64)
		return strconv.FormatInt(n, 10), err == nil && n >= low && n <= high
	}
}

// or takes a word besides.
func or(word string, number parser) parser {
	return func(value string) (string, bool) {
		if value == word {
			return value, true
		}
		return number(value)
	}
}

func orMax(low, high int64) parser { return or("max", integer(low, high)) }

const bytesText = "bytes, or max"

// bytesOrMax takes no unit: the kernel's M and Kubernetes' M differ.
var bytesOrMax = orMax(0, math.MaxInt64)

// words takes any of them.
func words(allowed ...string) parser {
	return func(value string) (string, bool) {
		for _, w := range allowed {
			if w == value {
				return w, true
			}
		}
		return "", false
	}
}

// bandwidth parses cpu.max. A quota alone leaves the period as it is. The least quota and
// period are 1 ms: min_bw_quota_period_us in the kernel's kernel/sched/core.c.
func bandwidth(value string) (string, bool) {
	quota, period, two := strings.Cut(value, " ")
	quota, ok := orMax(1_000, maxBandwidth)(quota)
	if !ok || !two {
		return quota, ok
	}
	period, ok = integer(1_000, 1_000_000)(strings.TrimSpace(period))
	return quota + " " + period, ok
}

const percentText = "percent, 0 to 100 with up to two decimals, or max"

// percent parses cpu.uclamp's, of which the kernel keeps two decimals.
func percent(value string) (string, bool) {
	if value == "max" {
		return value, true
	}
	units, decimals, point := strings.Cut(value, ".")
	if point && (decimals == "" || len(decimals) > 2) {
		return "", false
	}
	if strings.Trim(units+decimals, "0123456789") != "" {
		return "", false
	}
	units, ok := integer(0, 100)(units)
	decimals += "00"[len(decimals):]
	return units + "." + decimals, ok && (units != "100" || decimals == "00")
}

// weight parses those of io.weight and io.bfq.weight. A number alone is the default.
func weight(most int64) parser {
	standard, devices := pair(words("default"), integer(1, most)), pair(device, or("default", integer(1, most)))
	return func(line string) (string, bool) {
		if !strings.ContainsAny(line, " \t") {
			line = "default " + line
		}
		if v, ok := standard(line); ok {
			return v, true
		}
		return devices(line)
	}
}

// pair parses a name and a value.
func pair(of, value parser) parser {
	return func(line string) (string, bool) {
		parts := strings.Fields(line)
		if len(parts) != 2 {
			return "", false
		}
		name, ok := of(parts[0])
		v, fits := value(parts[1])
		return name + " " + v, ok && fits
	}
}

// Values of keyed.
var (
	one     = orMax(1, math.MaxInt64)
	target  = orMax(0, math.MaxInt64/1000) // must survive the kernel's conversion to nanoseconds
	handles = orMax(0, math.MaxInt32)
)

// keyed parses a name and at least one KEY=VALUE, which come out in the order of keys.
func keyed(of, value parser, keys ...string) parser {
	return func(line string) (string, bool) {
		words := strings.Fields(line)
		if len(words) < 2 {
			return "", false
		}
		out, ok := of(words[0])
		given := 1
		for _, key := range keys {
			if v, there := keyIn(line, key); there {
				parsed, fits := value(v)
				out, ok = out+" "+key+"="+parsed, ok && fits
				given++
			}
		}
		return out, ok && given == len(words) // each key is known, and given once
	}
}

// device parses MAJOR:MINOR, whose widths are Linux's: 12 and 20 bits.
func device(value string) (string, bool) {
	major, minor, colon := strings.Cut(value, ":")
	major, ok := integer(0, 1<<12-1)(major)
	minor, fits := integer(0, 1<<20-1)(minor)
	return major + ":" + minor, colon && ok && fits
}

// names are what the kernel has for devices and resources.
var names = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func name(value string) (string, bool) { return value, names.MatchString(value) }

// list parses the kernel's list format, "0-3,7".
func list(value string) (string, bool) { return value, IsList(value) }

// IsList reports whether a text is numbers and ranges such as 0-3,7, as cpuset.cpus takes
// them. An empty one is none.
func IsList(text string) bool {
	_, ok := ranges(text)
	return ok
}

// Numbers are those of a text that IsList takes; none of another.
func Numbers(text string) map[uint64]bool {
	all := map[uint64]bool{}
	in, _ := ranges(text)
	for _, r := range in {
		for n := r[0]; n <= r[1]; n++ {
			all[n] = true
		}
	}
	return all
}

// ranges are the first and last numbers of a text that IsList takes, which ok says it is.
func ranges(text string) (all [][2]uint64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, noFirst := strconv.ParseUint(first, 10, 16)
		to, noLast := strconv.ParseUint(last, 10, 16)
		if noFirst != nil || noLast != nil || from > to {
			return nil, false
		}
		all = append(all, [2]uint64{from, to})
	}
	return all, true
}

var pageSizes = regexp.MustCompile(`^[1-9][0-9]{0,8}[KMG]B$`)

// IsPageSize reports whether a text is a size of huge pages as the kernel writes it, such as 2MB.
func IsPageSize(text string) bool { return pageSizes.MatchString(text) }

// pageBytes is a size of huge pages that IsPageSize takes, in bytes.
func pageBytes(size string) int64 {
	n, _ := strconv.ParseInt(size[:len(size)-2], 10, 64)
	return n << (10 * (1 + strings.IndexByte("KMG", size[len(size)-2])))
}
