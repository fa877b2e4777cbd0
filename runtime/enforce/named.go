package enforce

import (
	"cmp"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// fileValues are the values that an update names, by the cgroup file that the runtime writes them
// to. A share of the CPU may become one of several weights.
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
		all["cpu.weight"] = dialect.Weights(n)
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

// Named has the ledger note what an accepted update of a container names: a file that shows just that, since
// a plugin wants the same, is not written. An update of a pod tells nothing: kubelet fills it in from the kernel.
func (e *Enforcer) Named(id ID, r *runtimeapi.LinuxContainerResources) {
	if e.Cgroups == nil {
		return
	}
	g := groupFiles{Group: e.Cgroups.Group(e.Ledger.Record(id).Group())}
	defer g.Close()
	e.Ledger.Record(id).Named(fileValues(r), g)
}

// Updated notes an update of a container that the runtime has accepted as kubelet sent it.
func (e *Enforcer) Updated(id ID, r *runtimeapi.UpdateContainerResourcesRequest) {
	e.Store.Observe(nil, r, nil)
	values := Values(r.GetLinux())
	e.Ledger.Record(id).Updated(Update{Kubelet: values, Sent: values})
	e.Named(id, r.GetLinux())
}
