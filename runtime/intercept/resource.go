package intercept

import (
	"iter"
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func resourceInt64(r *runtimeapi.LinuxContainerResources, f abi.Field) (int64, bool) {
	switch f {
	case abi.CPUPeriod:
		return r.GetCpuPeriod(), true
	case abi.CPUQuota:
		return r.GetCpuQuota(), true
	case abi.CPUShares:
		return r.GetCpuShares(), true
	case abi.MemoryLimit:
		return r.GetMemoryLimitInBytes(), true
	case abi.OOMScoreAdj:
		return r.GetOomScoreAdj(), true
	case abi.MemorySwap:
		return r.GetMemorySwapLimitInBytes(), true
	}
	return 0, false
}

func resourceText(r *runtimeapi.LinuxContainerResources, f abi.Field) (string, bool) {
	switch f {
	case abi.CpusetCpus:
		return r.GetCpusetCpus(), true
	case abi.CpusetMems:
		return r.GetCpusetMems(), true
	}
	return "", false
}

func resourceEntries(r *runtimeapi.LinuxContainerResources, f abi.Field) (iter.Seq2[string, string], bool) {
	switch f {
	case abi.HugepageLimits:
		return hugepages(r.GetHugepageLimits()), true
	case abi.Unified:
		return sorted(r.GetUnified()), true
	}
	return nil, false
}

func hugepages(limits []*runtimeapi.HugepageLimit) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, l := range limits {
			if !yield(l.GetPageSize(), strconv.FormatUint(l.GetLimit(), 10)) {
				return
			}
		}
	}
}

// setResource changes a field, given relative to its group.
func setResource(r *runtimeapi.LinuxContainerResources, f abi.Field, c *plugin.Change) {
	switch f {
	case abi.CPUPeriod:
		r.CpuPeriod = c.Int
	case abi.CPUQuota:
		r.CpuQuota = c.Int
	case abi.CPUShares:
		r.CpuShares = c.Int
	case abi.MemoryLimit:
		r.MemoryLimitInBytes = c.Int
	case abi.OOMScoreAdj:
		r.OomScoreAdj = c.Int
	case abi.CpusetCpus:
		r.CpusetCpus = c.Text
	case abi.CpusetMems:
		r.CpusetMems = c.Text
	case abi.HugepageLimits:
		setHugepages(r, c)
	case abi.Unified:
		setEntry(&r.Unified, c)
	case abi.MemorySwap:
		r.MemorySwapLimitInBytes = c.Int
	}
}

func setHugepages(r *runtimeapi.LinuxContainerResources, c *plugin.Change) {
	named := func(l *runtimeapi.HugepageLimit) bool { return l.GetPageSize() == c.Key }
	if c.Op == plugin.DeleteEntry {
		r.HugepageLimits = slices.DeleteFunc(r.HugepageLimits, named)
		return
	}
	limit, _ := strconv.ParseUint(c.Text, 10, 64) // checked when the plugin made the change
	if i := slices.IndexFunc(r.HugepageLimits, named); i >= 0 {
		r.HugepageLimits[i].Limit = limit
		return
	}
	r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: c.Key, Limit: limit})
}
