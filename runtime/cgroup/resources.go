package cgroup

import (
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
		return Resources{}, rules.Fail("read", group, "", "", bare(err))
	}
	get := func(file string) string {
		v, _ := f.Get(group, file)
		return v
	}
	quota, period, _ := strings.Cut(get("cpu.max"), " ")
	r := Resources{CPUQuota: number(quota), CPUPeriod: number(period), MemoryLimit: number(get("memory.max")), CPUShares: f.shares(rel)}
	r.MemorySwap = f.memorySwap(rel, r.MemoryLimit)
	if r.CpusetCPUs = get("cpuset.cpus"); r.CpusetCPUs == "" { // a group of v2 has its parent's
		r.CpusetCPUs = get("cpuset.cpus.effective")
	}
	if r.CpusetMems = get("cpuset.mems"); r.CpusetMems == "" {
		r.CpusetMems = get("cpuset.mems.effective")
	}
	return r, nil
}

// shares are those of v1. An idle group has the kernel's own, not those that it was
// given.
func (f *FS) shares(rel string) int64 {
	if f.version == 2 {
		return 0
	}
	if idle, err := f.get(rel, &rules.File{Name: rules.CPUIdle, Controller: "cpu", V1: "cpu.idle"}); err == nil && idle != "0" {
		return 0
	}
	text, err := f.get1(rel, "cpu", "cpu.shares")
	if err != nil {
		return 0
	}
	return number(text)
}

func (f *FS) memorySwap(rel string, memory int64) int64 {
	if f.version == 1 {
		text, err := f.get1(rel, "memory", "memory.memsw.limit_in_bytes")
		if err != nil {
			return 0
		}
		return number(text)
	}
	text, err := f.get(rel, &rules.File{Name: "memory.swap.max"})
	swap := number(text)
	switch {
	case err != nil || memory == 0:
		return 0
	case text == "0":
		return memory
	case swap <= 0 || memory < 0:
		return swap
	}
	return memory + swap
}

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
