package kubelet

import (
	"cmp"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Constants of pkg/kubelet/cm/helpers_linux.go.
const (
	minShares      = 2
	maxShares      = 262144
	sharesPerCPU   = 1024
	milliPerCPU    = 1000
	quotaPeriod    = 100000 // µs
	minQuotaPeriod = 1000   // µs
)

// Constants of pkg/kubelet/qos/policy.go.
const (
	guaranteedOOMScore = -997
	bestEffortOOMScore = 1000
)

// QoS classes, as the API names them.
const (
	Guaranteed = "Guaranteed"
	Burstable  = "Burstable"
	BestEffort = "BestEffort"
)

// pageSizes are those of huge pages on x86-64.
var pageSizes = map[string]string{"hugepages-1Gi": "1GB", "hugepages-2Mi": "2MB"}

func (q Quantities) milli(name string) int64 {
	v := q[name]
	return v.MilliValue()
}

func (q Quantities) value(name string) int64 {
	v := q[name]
	return v.Value()
}

// QoS returns the Pod's class, as ComputePodQOS of pkg/apis/core/v1/helper/qos does.
func (p *Pod) QoS() string {
	if p.levelResources() {
		return p.Spec.Resources.qos()
	}
	class := ""
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		of := c.Resources.qos()
		if of == Burstable || class != "" && class != of {
			return Burstable
		}
		class = of
	}
	return class
}

// levelResources reports whether the Pod says what it needs as a whole:
// IsPodLevelResourcesSet of k8s.io/component-helpers/resource.
func (p *Pod) levelResources() bool {
	return p.Spec.Resources != nil && len(p.Spec.Resources.Requests)+len(p.Spec.Resources.Limits) > 0
}

func (r *Requirements) qos() string {
	cpu, memory := r.qosOf("cpu"), r.qosOf("memory")
	if cpu != memory {
		return Burstable
	}
	return cpu
}

func (r *Requirements) qosOf(name string) string {
	request, limit := r.Requests[name], r.Limits[name]
	switch {
	case !request.Equal(limit):
		return Burstable
	case request.IsZero():
		return BestEffort
	}
	return Guaranteed
}

// linux is calculateLinuxResources of pkg/kubelet/kuberuntime.
func (n Node) linux(request, limit, memory int64) *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{
		CpuShares: min(max(request*sharesPerCPU/milliPerCPU, minShares), maxShares), // MilliCPUToShares of pkg/kubelet/cm/helpers_linux.go
		CpuPeriod: quotaPeriod, MemoryLimitInBytes: memory,
	}
	if limit != 0 { // MilliCPUToQuota of the same file
		r.CpuQuota = max(limit*quotaPeriod/milliPerCPU, minQuotaPeriod)
	}
	if n.CgroupVersion == 2 { // singleProcessOOMKill is false there
		r.Unified = map[string]string{"memory.oom.group": "1"}
	}
	return r
}

// PodCgroup is what kubelet writes to the Pod's cgroup: ResourceConfigForPod of
// pkg/kubelet/cm/helpers_linux.go. A limit is there only if all containers have one, or if the
// Pod has it as a whole.
func (n Node) PodCgroup(p *Pod) *runtimeapi.LinuxContainerResources {
	may := p.sum(limits)
	for name := range may {
		lacking := slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c Container) bool {
			return c.Resources.Limits.zero(name)
		})
		whole := p.levelResources() && !p.Spec.Resources.Limits.zero(name)
		if lacking && !whole {
			delete(may, name)
		} else if extra, ok := p.Spec.Overhead[name]; ok {
			may.add(Quantities{name: extra})
		}
	}
	return n.linux(p.sum(requests).milli("cpu")+p.Spec.Overhead.milli("cpu"), may.milli("cpu"), may.value("memory"))
}

func (q Quantities) zero(name string) bool {
	v := q[name]
	return v.IsZero()
}

// containerResources is generateLinuxContainerResources of pkg/kubelet/kuberuntime.
func (n Node) containerResources(p *Pod, c *Container) *runtimeapi.LinuxContainerResources {
	of := c.Resources
	cpu, memory := of.Limits.milli("cpu"), of.Limits.value("memory")
	if p.levelResources() {
		cpu = cmp.Or(cpu, p.Spec.Resources.Limits.milli("cpu"))
		memory = cmp.Or(memory, p.Spec.Resources.Limits.value("memory"))
	}
	request := cpu
	if _, given := of.Requests["cpu"]; given {
		request = of.Requests.milli("cpu")
	}
	r := n.linux(request, cpu, memory)
	r.OomScoreAdj = n.oomScore(p, c)
	for _, name := range []string{"hugepages-1Gi", "hugepages-2Mi"} {
		limit := uint64(of.Limits.value(name))
		r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: pageSizes[name], Limit: limit})
	}
	// ConfigureNoSwap of the same package, on a node that can limit swap.
	if n.CgroupVersion != 2 {
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
		return r
	}
	r.Unified["memory.swap.max"] = "0"
	r.Unified["memory.min"], r.Unified["memory.low"] = "0", "0" // feature MemoryQoS, with its defaults
	return r
}

// oomScore is GetContainerOOMScoreAdjust of pkg/kubelet/qos/policy.go.
func (n Node) oomScore(p *Pod, c *Container) int64 {
	if p.Spec.PriorityClassName == "system-node-critical" {
		return guaranteedOOMScore
	}
	switch p.QoS() {
	case Guaranteed:
		return guaranteedOOMScore
	case BestEffort:
		return bestEffortOOMScore
	}
	rest := int64(0) // remainingPodMemReqPerContainer of the same file
	if p.levelResources() && len(p.Spec.Resources.Requests) > 0 {
		unclaimed := p.sum(requests).value("memory") - p.containers(requests).value("memory")
		rest = unclaimed / int64(len(p.Spec.Containers)+len(p.Spec.InitContainers))
	}
	score := n.score(c.Resources.Requests.value("memory") + rest)
	if c.sidecar() { // minRegularContainerMemory of the same file
		least := p.Spec.Containers[0].Resources.Requests.value("memory")
		for _, c := range p.Spec.Containers {
			least = min(least, c.Resources.Requests.value("memory"))
		}
		score = min(score, n.score(least+rest))
	}
	return min(max(score, 1000+guaranteedOOMScore), bestEffortOOMScore-1)
}

func (n Node) score(memory int64) int64 { return 1000 - 1000*memory/n.Memory }

func (c *Container) sidecar() bool { return c.RestartPolicy == "Always" }

func requests(r *Requirements) Quantities { return r.Requests }
func limits(r *Requirements) Quantities   { return r.Limits }

// sum is what the Pod requests, or may have, without its overhead: PodRequests and
// PodLimits of k8s.io/component-helpers/resource.
func (p *Pod) sum(of func(*Requirements) Quantities) Quantities {
	total := p.containers(of)
	if p.levelResources() {
		for name, v := range of(p.Spec.Resources) {
			if name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-") {
				total[name] = v
			}
		}
	}
	return total
}

// containers is the same of the containers alone. Those that run before others count
// for as much as they need at a time, with the sidecars that run already.
func (p *Pod) containers(of func(*Requirements) Quantities) Quantities {
	total, sidecars, starting := Quantities{}, Quantities{}, Quantities{}
	for i := range p.Spec.Containers {
		total.add(of(&p.Spec.Containers[i].Resources))
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		need := Quantities{}
		need.add(of(&c.Resources))
		need.add(sidecars)
		if c.sidecar() {
			sidecars.add(of(&c.Resources))
		}
		starting.raise(need)
	}
	total.add(sidecars)
	total.raise(starting)
	return total
}

func (q Quantities) add(other Quantities) {
	for name, v := range other {
		sum := q[name].DeepCopy()
		sum.Add(v)
		q[name] = sum
	}
}

// raise makes each amount at least the other.
func (q Quantities) raise(other Quantities) {
	for name, v := range other {
		if have := q[name]; have.Cmp(v) < 0 {
			q[name] = v.DeepCopy()
		}
	}
}
