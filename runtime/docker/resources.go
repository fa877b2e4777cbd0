package docker

import (
	"cmp"
	"maps"
	"math"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// noMemoryLimit is the limit of memory that the kernel reports for a group without one: the largest
// number of whole pages. Docker takes no -1.
const noMemoryLimit = math.MaxInt64 - 4095

// created sets those fields in a creation, where a quota can take the place of NanoCpus, which have an
// upper bound.
func (c *changes) created(h *edit, of *resources, was, is *runtimeapi.LinuxContainerResources) {
	had := *of
	if had.MemorySwap == 0 { // Docker makes it twice the limit of memory
		had.MemorySwap = math.MaxInt64
	}
	if had.NanoCpus > 0 && quotaChanged(was, is) {
		had.NanoCpus = 0
		h.set("NanoCpus", 0)
		h.set("CpuPeriod", is.GetCpuPeriod())
		h.set("CpuQuota", is.GetCpuQuota())
	}
	if is.GetMemoryLimitInBytes() < 0 { // there is no limit to raise
		had.Memory = 0
	}
	c.resources(h, &had, was, is)
}

func quotaChanged(was, is *runtimeapi.LinuxContainerResources) bool {
	return is.GetCpuQuota() != was.GetCpuQuota() || is.GetCpuPeriod() != was.GetCpuPeriod()
}

// swapFor returns the limit of memory and swap together that goes with a new limit of memory: swap,
// which the request has, if that may stay. Docker refuses a limit of memory above both together,
// and in an update also one above an unlimited -1, if the update does not name it again.
func (r *resources) swapFor(memory, swap int64) int64 {
	switch {
	case memory <= 0, r.MemorySwap == r.Memory, r.MemorySwap >= 0 && r.MemorySwap < memory:
		return memory
	case r.MemorySwap < 0:
		return r.MemorySwap
	}
	return swap
}

// update edits the body of ContainerUpdate. had is what the container has after the update, but
// for the changes.
func (c *changes) update(had *resources, was, is *runtimeapi.UpdateContainerResourcesRequest) {
	c.resources(&c.edit, had, was.GetLinux(), is.GetLinux())
	if !maps.Equal(was.GetAnnotations(), is.GetAnnotations()) {
		c.left = append(c.left, "annotations")
	}
}

// resources sets those fields that plugins have changed, in the way that Docker takes them for a
// container which had these resources. It takes no quota for one that has NanoCpus.
func (c *changes) resources(e *edit, had *resources, was, is *runtimeapi.LinuxContainerResources) {
	nano := had.NanoCpus > 0 && quotaChanged(was, is)
	if nano {
		quota, period := is.GetCpuQuota(), cmp.Or(is.GetCpuPeriod(), nanoPeriod)
		cpus := c.cpus() // 0 if that is not known; Docker refuses more, and no quota is as many
		billionths := quota * nanoSecond / period
		if quota < 0 || cpus > 0 && quota > cpus*period {
			billionths = cpus * nanoSecond
		}
		e.set("NanoCpus", billionths)
	}
	memory, swap := is.GetMemoryLimitInBytes(), is.GetMemorySwapLimitInBytes()
	if memory < 0 && memory != was.GetMemoryLimitInBytes() {
		memory = 0 // Docker has none, or leaves it so
		if had.Memory > 0 {
			memory = noMemoryLimit
		}
	}
	if memory != was.GetMemoryLimitInBytes() && swap == was.GetMemorySwapLimitInBytes() {
		swap = had.swapFor(memory, swap)
	}
	for _, f := range []struct {
		name    string
		old, to int64
		not     bool // it is set otherwise
	}{
		{"CpuShares", was.GetCpuShares(), is.GetCpuShares(), false},
		{"CpuPeriod", was.GetCpuPeriod(), is.GetCpuPeriod(), nano},
		{"CpuQuota", was.GetCpuQuota(), is.GetCpuQuota(), nano},
		{"Memory", was.GetMemoryLimitInBytes(), memory, false},
		{"MemorySwap", was.GetMemorySwapLimitInBytes(), swap, false},
	} {
		if f.old != f.to && !f.not {
			e.set(f.name, f.to)
		}
	}
	if is.GetCpusetCpus() != was.GetCpusetCpus() {
		e.set("CpusetCpus", is.GetCpusetCpus())
	}
	if is.GetCpusetMems() != was.GetCpusetMems() {
		e.set("CpusetMems", is.GetCpusetMems())
	}
	if !maps.Equal(was.GetUnified(), is.GetUnified()) {
		c.left = append(c.left, "resources.unified")
	}
	if !equal(was.GetHugepageLimits(), is.GetHugepageLimits()) {
		c.left = append(c.left, "resources.hugepage_limits")
	}
}
