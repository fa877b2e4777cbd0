package enforce

import (
	"os"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// fieldFile is a resource, and the cgroup file that runtimes write it to.
type fieldFile struct {
	field abi.Field
	file  string
}

// text reports whether the resource is a text, and not a number.
func (x fieldFile) text() bool {
	return x.field == abi.Resources+abi.CpusetCpus || x.field == abi.Resources+abi.CpusetMems || x.field == abi.Resources+abi.Unified
}

// fieldFiles are the resources of one file, by the ledger's names. Huge pages have one for each
// size.
var fieldFiles = func() map[Target]fieldFile {
	all := map[Target]fieldFile{}
	for _, x := range rules.Files {
		for _, f := range x.Fields {
			if f != abi.HugepageLimits && x.Same == "" {
				all[fieldTarget(abi.Resources+f, "")] = fieldFile{abi.Resources + f, x.Name}
			}
		}
	}
	return all
}()

// fileOf returns the file of a resource; false if it has none, or several.
func fileOf(t Target) (x fieldFile, ok bool) {
	if x, ok = fieldFiles[t]; ok {
		return x, true
	}
	key, unified := strings.CutPrefix(string(t), "field unified[")
	if !unified {
		return fieldFile{}, false
	}
	return fieldFile{abi.Resources + abi.Unified, strings.TrimSuffix(key, "]")}, true
}

// holdsField reports whether the file of a resource, which shows held, has what the runtime was
// sent. has are all resources that the runtime was sent.
func (g groupFiles) holdsField(x fieldFile, sent, held string, has *runtimeapi.LinuxContainerResources) bool {
	switch n, err := strconv.ParseInt(sent, 10, 64); x.field {
	case abi.Resources + abi.CPUQuota:
		return err != nil || holdsQuota(n, held)
	case abi.Resources + abi.CPUPeriod:
		_, period, _ := strings.Cut(held, " ")
		_, rounded, _ := strings.Cut(g.Rounded(rules.CPUMax, "1000 "+sent), " ")
		return period == sent || period == rounded
	case abi.Resources + abi.CPUShares:
		if g.Version() == 1 {
			return g.Exact(x.file, "") == sent
		}
		return slices.Contains(dialect.Weights(n), held)
	case abi.Resources + abi.MemoryLimit:
		return err != nil || holdsBytes(n, held)
	case abi.Resources + abi.MemorySwap:
		memory := has.GetMemoryLimitInBytes()
		if g.Version() == 1 { // the kernel has the sum, too
			memory = rules.ParseLimit(rules.MemoryMax, g.get(rules.MemoryMax)).Amount
		}
		swap, known := swapOf(n, memory)
		return err != nil || !known || holdsBytes(swap, held)
	}
	return held == sent || g.Holds(x.file, g.Fit(x.file, sent), held)
}

// holdsQuota reports whether cpu.max has a quota, which systemd rounds up to the next 10 ms in a
// second.
func holdsQuota(n int64, held string) bool {
	limit := rules.ParseLimit(rules.CPUMax, held)
	if n < 0 || limit.Amount <= 0 {
		return n < 0 && limit.Amount <= 0
	}
	return limit.Amount >= n && limit.Amount-n <= limit.Period/100
}

// holdsBytes reports whether a file has a number of bytes, which the kernel rounds down to whole
// pages. A negative one is no limit.
func holdsBytes(n int64, held string) bool {
	has, err := strconv.ParseInt(held, 10, 64)
	if n < 0 || err != nil {
		return n < 0 && held == "max"
	}
	return has <= n && n-has < int64(os.Getpagesize())
}

// swapOf is the limit of swap alone of CRI's limit of memory and swap together; -1 is no limit. It is
// false without a limit of memory.
func swapOf(sum, memory int64) (swap int64, known bool) {
	if sum < 0 {
		return -1, true
	}
	return sum - memory, memory > 0 && sum >= memory
}
