package plugin

import (
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The cgroup files that hold the limits of a pod, by their v2 names.
const (
	cpuMax    = "cpu.max"
	memoryMax = "memory.max"
)

// defaultPeriod is the period of a quota where none is set, in µs: that of the kernel and of
// kubelet.
const defaultPeriod = 100_000

// PodLimiter is an Event that knows the limits of pods' cgroups.
type PodLimiter interface {
	// PodLimit returns what the kernel holds of cpu.max or memory.max of the pod that a
	// container is of; false if that is not known.
	PodLimit(container abi.Object, file string) (value string, ok bool)
}

// limit is a CPU or memory limit of a container or pod.
type limit struct {
	file           string // "" if it is none
	amount, period int64  // µs of CPU in each period of so many µs, or bytes and 1; amount 0 is no limit
}

// above reports whether l and the other are finite, and l allows more. The products do not
// fit an int64.
func (l limit) above(other limit) bool {
	a := new(big.Int).Mul(big.NewInt(l.amount), big.NewInt(other.period))
	b := new(big.Int).Mul(big.NewInt(other.amount), big.NewInt(l.period))
	return l.amount > 0 && other.amount > 0 && a.Cmp(b) > 0
}

// String is a finite limit as its file has it.
func (l limit) String() string {
	if l.file == memoryMax {
		return strconv.FormatInt(l.amount, 10)
	}
	return fmt.Sprintf("%d %d", l.amount, l.period)
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
	wanted := a.limitOf(c)
	if wanted.file == "" {
		return nil
	}
	held, ok := pods.PodLimit(c.Object, wanted.file)
	if !ok {
		return nil
	}
	pod := parseLimit(wanted.file, held)
	granted := a.of.Capabilities.Has(abi.PodLimits)
	if !wanted.above(pod) {
		c.Raises = granted && a.files.Version() == 2
		return nil
	}
	reason := fmt.Sprintf("%s %q would be above the pod's, %q", wanted.file, wanted, pod)
	if a.files.Version() == 1 {
		return refused(c, abi.Unsupported, reason+", which can be raised on cgroup v2 only")
	}
	if !granted {
		return refused(c, abi.Denied, reason+"; "+a.Lacks(abi.CapabilitySetOf(abi.PodLimits)))
	}
	c.Raises = true
	return nil
}

// limitOf returns the limit that a container has with a change; the zero limit if it is another
// change.
func (a *Adjustment) limitOf(c *Change) limit {
	if c.Kind() != abi.Container {
		return limit{}
	}
	switch {
	case c.Op == WriteFile, c.Op == SetEntry && c.Field == abi.Resources+abi.Unified:
		return parseLimit(c.Key, c.Text)
	case c.Op != SetInt64:
	case c.Field == abi.Resources+abi.MemoryLimit:
		return limit{memoryMax, max(c.Int, 0), 1}
	case c.Field == abi.Resources+abi.CPUQuota:
		return limit{cpuMax, max(c.Int, 0), cmp.Or(a.number(c, abi.CPUPeriod), defaultPeriod)}
	case c.Field == abi.Resources+abi.CPUPeriod:
		return limit{cpuMax, max(a.number(c, abi.CPUQuota), 0), cmp.Or(c.Int, defaultPeriod)}
	}
	return limit{}
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

// parseLimit reads what cpu.max or memory.max holds; the zero limit if it is another file.
func parseLimit(file, text string) limit {
	amount, period, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(amount, 10, 64) // max is 0: no limit
	switch file {
	case memoryMax:
		return limit{file, n, 1}
	case cpuMax:
		p, _ := strconv.ParseInt(period, 10, 64)
		return limit{file, n, cmp.Or(p, defaultPeriod)}
	}
	return limit{}
}
