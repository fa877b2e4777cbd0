package plugin

import (
	"cmp"
	"fmt"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// PodLimiter is an Event that knows the limits of pods' cgroups.
type PodLimiter interface {
	// PodLimit returns what the kernel holds of cpu.max or memory.max of the pod that a
	// container is of; false if that is not known.
	PodLimit(container abi.Object, file string) (value string, ok bool)
}

// checkPodLimit refuses a finite CPU or memory limit of a container above the finite one of its
// pod: it would have no effect on cgroup v2, and v1's kernel would refuse it. Without a limit of
// its own a container has the pod's, as kubelet has it with resources of a pod. A plugin that may
// set pods' limits has its own carried out with the pod's.
func (a *Adjustment) checkPodLimit(c *Change) error {
	pods, ok := a.event.(PodLimiter)
	if !ok || a.of.KeepsPodLimits {
		return nil
	}
	var file string
	var wanted rules.Limit
	switch {
	case c.Kind() != abi.Container:
	case c.Op == WriteFile, c.Op == SetEntry && c.Field == abi.Resources+abi.Unified:
		file, wanted = c.Key, rules.ParseLimit(c.Key, c.Text)
	case c.Op != SetInt64:
	case c.Field == abi.Resources+abi.MemoryLimit:
		file, wanted = rules.MemoryMax, rules.Limit{Amount: max(c.Int, 0), Period: 1}
	case c.Field == abi.Resources+abi.CPUQuota:
		file, wanted = rules.CPUMax, rules.Limit{Amount: max(c.Int, 0), Period: cmp.Or(a.number(c, abi.CPUPeriod), rules.DefaultPeriod)}
	case c.Field == abi.Resources+abi.CPUPeriod:
		file, wanted = rules.CPUMax, rules.Limit{Amount: max(a.number(c, abi.CPUQuota), 0), Period: cmp.Or(c.Int, rules.DefaultPeriod)}
	}
	if wanted.Period == 0 { // it is another change
		return nil
	}
	held, ok := pods.PodLimit(c.Object, file)
	if !ok {
		return nil
	}
	pod := rules.ParseLimit(file, held)
	granted := a.of.Capabilities.Has(abi.PodLimits)
	if !wanted.Above(pod) {
		c.Raises = granted && a.cgroupVersion == 2
		return nil
	}
	reason := fmt.Sprintf("%s %q would be above the pod's, %q", file, wanted.Text(file), pod.Text(file))
	if a.cgroupVersion == 1 {
		return refused(c, abi.Unsupported, reason+", which can be raised on cgroup v2 only")
	}
	if !granted {
		return refused(c, abi.Denied, reason+"; "+a.Lacks(abi.CapabilitySetOf(abi.PodLimits)))
	}
	c.Raises = true
	return nil
}

// number is another resource of the container that c changes: as the plugin has set it in this
// call, else as the event has it.
func (a *Adjustment) number(c *Change, resource abi.Field) int64 {
	for i := len(a.changes) - 1; i >= 0; i-- {
		if d := &a.changes[i].Change; d.Op == SetInt64 && d.Object == c.Object && d.Field == abi.Resources+resource {
			return d.Int
		}
	}
	n, _ := a.event.Int64(c.Object, abi.Resources+resource)
	return n
}
