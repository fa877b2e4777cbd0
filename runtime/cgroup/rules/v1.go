package rules

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// V1 is how cgroup v1 has a file of v2: under one or more names, in other units. A name begins with
// that of its controller.
type V1 struct {
	Names    []string // the files that a value is read from and written to
	Optional []string // those of Names that the kernel may lack
	Needs    string   // the kernel that has them, for people; empty if every supported one has

	// Read puts what the files hold into the form of the file of v2.
	Read func(Held) (string, error)
	// Writes returns the writes that give the file a value which [Set.Parse] returned, in an order
	// in which the kernel refuses none because of another. One file is written whatever it holds.
	Writes func(value string, held Held) ([]Write, error)

	round func(value string) string // to what can be read back; nil if any value can
}

// Held is the content of files of cgroup v1, by name, without the final newline. A file that
// the kernel lacks is not in it.
type Held map[string]string

// Write is one write to a file of cgroup v1. Undo is the value that takes it back.
type Write struct{ Name, Value, Undo string }

// renamed is a file that holds the same under another name.
func renamed(name, needs string) *V1 {
	return &V1{
		Names: []string{name}, Needs: needs,
		Read:   func(held Held) (string, error) { return held[name], nil },
		Writes: func(value string, held Held) ([]Write, error) { return []Write{held.change(name, value)}, nil },
	}
}

// sized returns the row with a size of huge pages in its names.
func (x *File) sized(size string) *File {
	sized, v1 := *x, *x.V1
	sized.Name, sized.Size = strings.Replace(x.Name, pageSize, size, 1), size
	v1.Names = []string{strings.Replace(x.V1.Names[0], pageSize, size, 1)}
	bytes := pageBytes(size)
	sized.none = math.MaxInt64 / bytes * bytes // a group that nobody has limited has no max in v2, too
	v1.Read = func(held Held) (string, error) { return limit(held, v1.Names[0], sized.none) }
	v1.Writes = func(value string, held Held) ([]Write, error) {
		return []Write{held.change(v1.Names[0], minusOne(value))}, nil
	}
	sized.V1 = &v1
	sized.same = func(value, held string) bool { return rounded(value, bytes) == held }
	return &sized
}

func (h Held) change(name, value string) Write { return Write{name, value, h[name]} }

// number reads a file that holds one number.
func (h Held) number(name string) (int64, error) {
	n, err := strconv.ParseInt(h[name], 10, 64)
	if err != nil {
		return 0, Reason(abi.Invalid, "%s holds %.32q", name, h[name])
	}
	return n, nil
}

// noLimit is the smallest limit in bytes that means none: v1 shows the largest multiple
// of the page size.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

// limit reads a file that holds a limit in bytes, of which none and more mean no limit.
func limit(held Held, name string, none int64) (string, error) {
	n, err := held.number(name)
	if err == nil && n >= none {
		return "max", nil
	}
	return held[name], err
}

func minusOne(value string) string {
	if value == "max" {
		return "-1"
	}
	return value
}

// cpuShares is the weight as shares.
var cpuShares = &V1{
	Names: []string{"cpu.shares"},
	Read: func(held Held) (string, error) {
		shares, err := held.number("cpu.shares")
		return strconv.FormatUint(dialect.Weight(uint64(max(shares, 2))), 10), err
	},
	Writes: func(value string, held Held) ([]Write, error) {
		weight, err := strconv.ParseUint(value, 10, 64)
		return []Write{held.change("cpu.shares", strconv.FormatUint(shares(weight), 10))}, err
	},
}

// shares returns the fewest shares of a weight. Each weight has some.
func shares(weight uint64) uint64 {
	if weight == 100 {
		return 1024 // the default
	}
	more := sort.Search(262142, func(n int) bool { return dialect.Weight(uint64(2+n)) >= weight })
	return uint64(2 + more)
}

const (
	quotaFile  = "cpu.cfs_quota_us"
	periodFile = "cpu.cfs_period_us"
)

// cpuQuota is cpu.max in two files. A longer period goes first and a shorter one last: what
// is between allows the group less than either, which its parent's limit never forbids.
var cpuQuota = &V1{
	Names: []string{quotaFile, periodFile}, Needs: "CONFIG_CFS_BANDWIDTH",
	Read: func(held Held) (string, error) {
		quota := held[quotaFile]
		if strings.HasPrefix(quota, "-") {
			quota = "max"
		}
		return quota + " " + held[periodFile], nil
	},
	Writes: func(value string, held Held) ([]Write, error) {
		quota, period, _ := strings.Cut(value, " ")
		writes := []Write{held.change(quotaFile, minusOne(quota))}
		if period == "" || period == held[periodFile] {
			return writes, nil
		}
		before, err := held.number(periodFile)
		after, _ := strconv.ParseInt(period, 10, 64)
		writes = append(writes, held.change(periodFile, period))
		if after > before {
			slices.Reverse(writes)
		}
		return writes, err
	},
}

const (
	memoryFile = "memory.limit_in_bytes"
	swapFile   = "memory.memsw.limit_in_bytes" // memory and swap together; the kernel may not count swap
)

// memoryLimit keeps the swap that the group may use, as v2 does, so that it moves the limit of
// both together. That one is never below the memory's.
var memoryLimit = &V1{
	Names: []string{memoryFile, swapFile}, Optional: []string{swapFile},
	Read: func(held Held) (string, error) { return limit(held, memoryFile, noLimit) },
	Writes: func(value string, held Held) ([]Write, error) {
		memory := held.change(memoryFile, minusOne(value))
		if _, counted := held[swapFile]; !counted {
			return []Write{memory}, nil
		}
		swap, err := swapOf(held)
		if err == nil && value == "max" && swap != "max" {
			err = Reason(abi.Unsupported, "cgroup v1 limits swap only together with memory, and the group has a limit of swap")
		}
		if err != nil {
			return nil, err
		}
		if swap == "max" {
			return []Write{memory}, nil
		}
		sum := held.change(swapFile, plus(value, swap))
		before, err := held.number(memoryFile)
		if after, _ := strconv.ParseInt(value, 10, 64); after > before { // Parse has seen a number
			return []Write{sum, memory}, err
		}
		return []Write{memory, sum}, err
	},
}

var swapLimit = &V1{
	Names: []string{memoryFile, swapFile}, Needs: "CONFIG_MEMCG_V1 and swap accounting",
	Read: swapOf,
	Writes: func(value string, held Held) ([]Write, error) {
		memory, err := limit(held, memoryFile, noLimit)
		if err == nil && memory == "max" && value != "max" {
			err = Reason(abi.Unsupported, "cgroup v1 limits swap only together with memory, and the group has no memory limit")
		}
		return []Write{held.change(swapFile, plus(memory, value))}, err
	},
}

// swapOf is the swap that a group may use besides its memory.
func swapOf(held Held) (string, error) {
	sum, err := limit(held, swapFile, noLimit)
	if err != nil || sum == "max" {
		return sum, err
	}
	memory, err := held.number(memoryFile)
	both, _ := held.number(swapFile)
	return strconv.FormatInt(max(both-memory, 0), 10), err
}

// plus adds two limits in bytes, as v1 takes the sum.
func plus(a, b string) string {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil || x >= noLimit-y {
		return "-1"
	}
	return strconv.FormatInt(x+y, 10)
}
