package cgroup

import (
	"math"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Resources are what a group's files allow it, in CRI's terms: quota and period in
// microseconds, memory in bytes, -1 where there is no limit. 0 and "" mean that the
// files do not tell.
type Resources struct {
	CPUPeriod, CPUQuota     int64
	CPUShares               int64 // v1 only: a weight of v2 is of more than one number of shares
	MemoryLimit, MemorySwap int64 // MemorySwap is memory and swap together
	CpusetCPUs, CpusetMems  string
}

// Resources reads what the group is allowed. A file that cannot be read tells
// nothing. The code of its error is abi.NotFound if the group is not there.
func (f *FS) Resources(group string) (Resources, error) {
	rel, err := clean(group)
	if err == nil {
		err = f.exists(rel)
	}
	if err != nil {
		return Resources{}, rules.Fail("read", group, "", "", err)
	}
	g := f.at(rel)
	defer g.Close()
	get := func(file string) string {
		v, _ := g.getAny(file)
		return v
	}
	quota, period, _ := strings.Cut(get("cpu.max"), " ")
	r := Resources{CPUQuota: number(quota), CPUPeriod: number(period), MemoryLimit: number(get("memory.max"))}
	r.MemorySwap = sum(r.MemoryLimit, get("memory.swap.max"))
	if f.version == 1 && get(rules.CPUIdle) != "1" { // an idle group has the kernel's own shares
		shares, _ := g.readFile("cpu", "cpu.shares", "")
		r.CPUShares = number(shares)
	}
	if r.CpusetCPUs = get("cpuset.cpus"); r.CpusetCPUs == "" { // a group of v2 has its parent's
		r.CpusetCPUs = get("cpuset.cpus.effective")
	}
	if r.CpusetMems = get("cpuset.mems"); r.CpusetMems == "" {
		r.CpusetMems = get("cpuset.mems.effective")
	}
	return r, nil
}

// Weight returns the cpu.weight of cgroup v2 for CPU shares, as [rules.Weight].
func Weight(shares uint64) uint64 { return rules.Weight(shares) }

// sum is the limit of memory and swap together.
func sum(memory int64, swapText string) int64 {
	swap := number(swapText)
	switch {
	case swapText == "" || memory == 0:
		return 0
	case swapText == "0":
		return memory
	case swap <= 0 || memory < 0:
		return swap
	}
	return memory + swap
}

// noLimit is the smallest memory limit that means none: cgroup v1 has the largest multiple
// of the page size.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

// number reads a number of a cgroup file; -1 is none, 0 what is not a number.
func number(text string) int64 {
	if text == "max" {
		return -1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return 0
	case n >= noLimit:
		return -1
	}
	return int64(n)
}
