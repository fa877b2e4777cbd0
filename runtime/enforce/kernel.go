package enforce

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// KernelOf is what the node's cgroups tell the store; nil without any.
func KernelOf(fs *cgroup.FS) pods.Kernel {
	if fs == nil {
		return nil
	}
	return kernel{fs}
}

type kernel struct{ *cgroup.FS }

// Group implements pods.Kernel.
func (k kernel) Group(pid int, id string) (string, error) { return k.GroupOfProcess(pid, id) }

// Resources implements pods.Kernel. A file that the kernel lacks tells nothing.
func (k kernel) Resources(group string) (*runtimeapi.LinuxContainerResources, pods.Parts, error) {
	g := groupFiles{Group: k.FS.Group(group)}
	defer g.Close()
	limit, err := g.Read(rules.CPUMax)
	if err != nil && rules.CodeOf(err) != abi.Unsupported {
		return nil, 0, err
	}
	quota, period, _ := strings.Cut(limit, " ")
	res := &runtimeapi.LinuxContainerResources{
		CpuPeriod: number(period), CpuQuota: number(quota), MemoryLimitInBytes: number(g.get(rules.MemoryMax)),
		CpusetCpus: cmp.Or(g.get("cpuset.cpus"), g.get("cpuset.cpus.effective")), // a group of v2 has its parent's
		CpusetMems: cmp.Or(g.get("cpuset.mems"), g.get("cpuset.mems.effective")),
	}
	res.MemorySwapLimitInBytes = sum(res.MemoryLimitInBytes, g.get("memory.swap.max"))
	if k.Version() == 1 && g.get(rules.CPUIdle) != "1" { // an idle group has the kernel's own shares; a weight of v2 is of several
		res.CpuShares = number(g.Exact("cpu.weight", ""))
	}
	var reported pods.Parts
	values := Values(res)
	for f := range abi.MemorySwap + 1 {
		if _, tells := values[fieldTarget(abi.Resources+f, "")]; tells {
			reported |= pods.PartOf(abi.Resources + f)
		}
	}
	return res, reported, nil
}

// sum is CRI's limit of memory and swap together, for the limit of memory.swap.max.
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

// number reads a number of a cgroup file as CRI has it: -1 is no limit, 0 what is not a number.
func number(text string) int64 {
	if text == "max" {
		return -1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// groupFiles are the files of one cgroup. It implements Kernel.
type groupFiles struct {
	*cgroup.Group
	none error // why there is no such group
	held Held  // what its files hold, as far as they were read
}

// get returns what a file of the group holds; "" if that is not known.
func (g groupFiles) get(file string) string {
	held, known := g.held[file]
	if !known {
		held, _ = g.Read(file)
	}
	return held
}

// Holds implements Kernel.
func (g groupFiles) Holds(file, value, held string) bool {
	return rules.Set(g.Version()).Holds(file, value, held)
}

// lessBurst has a burst go down before the quota, to which it would be cut otherwise.
func lessBurst(due []Write) []Write {
	for k, w := range due {
		if w.File != rules.CPUBurst {
			continue
		}
		value, err := strconv.ParseInt(w.Value, 10, 64)
		found, foundErr := strconv.ParseInt(w.Found, 10, 64)
		if err == nil && foundErr == nil && value < found {
			due[0], due[k] = due[k], due[0]
		}
	}
	return due
}

// Fit rounds a quota as systemd does, and cuts a burst to the quota of the moment, as the kernel
// refuses a larger one. The whole burst comes back with a larger quota.
func (g groupFiles) Fit(file, value string) string {
	if file != rules.CPUBurst {
		return g.Rounded(file, value)
	}
	return rules.FitBurst(value, g.get(rules.CPUMax))
}

// letsOthers reports whether a write lets other files of the group have a value that they could
// not have before.
func letsOthers(w Write, files []string) bool {
	switch {
	case endsIdle(w):
		return true
	case w.File == rules.CPUMax:
		return slices.Contains(files, rules.CPUBurst)
	}
	return w.Kind == Undo && slices.Contains(files, rules.OtherView(w.File))
}

// endsIdle reports whether the group of a write gets a share of the CPU again.
func endsIdle(w Write) bool { return w.File == rules.CPUIdle && w.Value == "0" }
