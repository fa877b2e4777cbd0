package intercept

import (
	"cmp"
	"maps"
	"os"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// resized returns the one resource, such as cpu, of which an update of a container names another
// value than kubelet's last one; "" if there is none, or several. before is what the runtime had. A
// number of 0 is one that is not set; a cpuset of 0 is the first CPU.
func (i *interceptor) resized(id ledger.ID, named map[ledger.Target]string, before *runtimeapi.LinuxContainerResources) (resource string) {
	record, had := i.Ledger.Record(id), resourceValues(before)
	for t, value := range named {
		last := had[t]
		if v := record[t]; v.Kubelet != nil {
			last = *v.Kubelet
		}
		switch of := resourceOf(t); {
		case value == last || value == "0" && last == "" && of != "cpuset" || of == resource:
		case resource != "":
			return ""
		default:
			resource = of
		}
	}
	return resource
}

// ownOf are those values of an update that are kubelet's own even if a plugin has set the same:
// they are of the resource for whose sake kubelet sends the update. Those of another resource may
// be what the runtime's status shows, which is the plugin's.
func ownOf(named map[ledger.Target]string, resized string) map[ledger.Target]bool {
	own := map[ledger.Target]bool{}
	for t := range named {
		own[t] = resourceOf(t) == resized
	}
	return own
}

// resourceOf is the resource that a field or file is of. kubelet derives oom_score_adj from the memory.
func resourceOf(t ledger.Target) string {
	name := strings.TrimPrefix(string(t), string(ledger.Field("")))
	name = strings.TrimPrefix(name, "unified[")
	if end := strings.IndexAny(name, "_."); end >= 0 {
		name = name[:end]
	}
	if name == "oom" {
		return "memory"
	}
	return name
}

// fileValues are the values that an update names, by the cgroup file that the runtime writes them
// to. A share of the CPU may become either of two weights: runc has changed its function.
func fileValues(r *runtimeapi.LinuxContainerResources) map[string][]string {
	all := map[string][]string{}
	for file, value := range r.GetUnified() {
		all[file] = []string{value}
	}
	if r.GetCpuQuota() != 0 {
		limit := rules.Limit{Amount: max(r.GetCpuQuota(), 0), Period: cmp.Or(r.GetCpuPeriod(), rules.DefaultPeriod)}
		all[rules.CPUMax] = []string{limit.Text(rules.CPUMax)}
	}
	if n := r.GetCpuShares(); n > 0 {
		all["cpu.weight"] = weights(n)
	}
	memory := r.GetMemoryLimitInBytes()
	if memory != 0 {
		all[rules.MemoryMax] = []string{rules.Limit{Amount: max(memory, 0)}.Text(rules.MemoryMax)}
	}
	if swap, known := swapOf(r.GetMemorySwapLimitInBytes(), memory); known && swap >= 0 {
		all["memory.swap.max"] = []string{strconv.FormatInt(swap, 10)}
	}
	if r.GetCpusetCpus() != "" {
		all["cpuset.cpus"] = []string{r.GetCpusetCpus()}
	}
	if r.GetCpusetMems() != "" {
		all["cpuset.mems"] = []string{r.GetCpusetMems()}
	}
	return all
}

// named has the ledger note what an accepted update of a container names for the sake of which
// kubelet sends it. An update of a pod tells nothing: kubelet fills it in from the kernel.
func (i *interceptor) named(id ledger.ID, r *runtimeapi.LinuxContainerResources, resized string) {
	if i.Cgroups == nil || resized == "" {
		return
	}
	files := fileValues(r)
	maps.DeleteFunc(files, func(file string, _ []string) bool { return resourceOf(ledger.Target(file)) != resized })
	g := groupFiles{Group: i.Cgroups.Group(i.Ledger.Group(id))}
	defer g.Close()
	i.Ledger.Named(id, files, g)
}

// limitsBefore are kubelet's limits of a container before an update, by file, as far as plugins raise
// the pod's and kubelet's of the pod is the sum of its containers'. nil if there are none.
func (i *interceptor) limitsBefore(id ledger.ID) map[string]rules.Limit {
	if !i.Ledger.Raises(id.Pod) {
		return nil
	}
	before := map[string]rules.Limit{}
	record := i.Ledger.Record(ledger.ID{Pod: id.Pod})
	for _, file := range []string{rules.CPUMax, rules.MemoryMax} {
		v := record[ledger.File(file)]
		if v.Kubelet == nil || len(v.Wishes) == 0 {
			continue
		}
		limit, sum := rules.ParseLimit(file, *v.Kubelet), rules.ParseLimit(file, *v.Kubelet)
		if sum.Amount = cmp.Or(v.Sum, sum.Amount); i.isSum(id.Pod, file, sum) || i.isSum(id.Pod, file, limit) {
			before[file], _ = i.limitsOf(id, file, nil)
		}
	}
	return before
}

// isSum reports whether a limit of a pod may be the sum of those of its containers and its overhead.
// It has no less than those that run need, and no more than the newest of each name: init
// containers have ended, and others may be about to start again. With resources of the pod's own
// (KEP-2837), the limit is no sum.
func (i *interceptor) isSum(uid, file string, limit rules.Limit) bool {
	pod, known := i.podOf(uid)
	newest := map[string]pods.Container{}
	for _, c := range i.Store.Containers(pod.ID) {
		meta := c.Config.GetMetadata()
		if former, ok := newest[meta.GetName()]; !ok || former.Config.GetMetadata().GetAttempt() <= meta.GetAttempt() {
			newest[meta.GetName()] = c
		}
	}
	overhead := crifield.Object{Container: &crifield.Container{Resources: pod.Overhead}}
	least := limitIn(overhead, file).In(limit.Period)
	most, unit := least, max(limit.Period/100, 1) // systemd has whole percents of a CPU
	if file == rules.MemoryMax {                  // the kernel has whole pages
		unit = int64(os.Getpagesize())
	}
	for _, c := range newest {
		part, _ := i.limitsOf(ledger.ID{Pod: uid, Container: c.ID}, file, nil)
		if part.Amount <= 0 || c.ByListAlone() {
			return false
		}
		most += part.In(limit.Period) + unit
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			least += part.In(limit.Period)
		}
	}
	return known && least-unit < limit.Amount && limit.Amount <= most
}

// limitIn is the limit among the resources of an object that a file holds.
func limitIn(o crifield.Object, file string) rules.Limit {
	number := func(f abi.Field) int64 { n, _ := o.Int64(abi.Resources + f); return max(n, 0) }
	if file == rules.MemoryMax {
		return rules.Limit{Amount: number(abi.MemoryLimit), Period: 1}
	}
	return rules.Limit{Amount: number(abi.CPUQuota), Period: cmp.Or(number(abi.CPUPeriod), rules.DefaultPeriod)}
}

// followLimits has the ledger note what kubelet's limits of a pod are, after an update of a container
// that the runtime has accepted. kubelet reads the pod's limit before a resize, and writes none that
// is there already: the one to which the host has raised it.
func (i *interceptor) followLimits(id ledger.ID, before map[string]rules.Limit, named map[ledger.Target]string, resized string) {
	for file, was := range before {
		now := was
		for field, amount := range map[abi.Field]*int64{abi.CPUQuota: &now.Amount, abi.CPUPeriod: &now.Period, abi.MemoryLimit: &now.Amount} {
			t := fieldTarget(abi.Resources+field, "")
			if value, ok := named[t]; ok && limitFile(t) == file && !i.Ledger.Repeats(id, t, value, resourceOf(t) == resized) {
				*amount, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if now.Amount <= 0 || now.Period <= 0 {
			continue
		}
		i.Ledger.Follow(id.Pod, file, func(kubelet string, sum int64) (string, int64) {
			pod := rules.ParseLimit(file, kubelet)
			sum = min(cmp.Or(sum, pod.Amount), pod.Amount) + now.In(pod.Period) - was.In(pod.Period)
			pod.Amount = max(pod.Amount, sum)
			return pod.Text(file), sum
		})
	}
}
