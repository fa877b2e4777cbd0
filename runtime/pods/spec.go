package pods

import (
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// annotated returns what the annotations have that a column of the dialects names.
func (s *runtimeSpec) annotated(column func(dialect.Runtime) []string) (values []string) {
	for _, name := range dialect.Union(column) {
		values = append(values, s.Annotations[name])
	}
	return values
}

// resourcesIn returns the resources of the first text that has some, or nil.
func resourcesIn(texts []string) *runtimeapi.LinuxContainerResources {
	for _, text := range texts {
		var res *runtimeapi.LinuxContainerResources
		if err := json.Unmarshal([]byte(text), &res); err == nil && res != nil {
			return res
		}
	}
	return nil
}

// resources returns what the spec says in CRI's terms, or nil if it says nothing.
func (s *runtimeSpec) resources() *runtimeapi.LinuxContainerResources {
	if s.Linux == nil || s.Linux.Resources == nil {
		return nil
	}
	r, res := s.Linux.Resources, &runtimeapi.LinuxContainerResources{Unified: s.Linux.Resources.Unified}
	if c := r.CPU; c != nil {
		res.CpuPeriod, res.CpuQuota, res.CpuShares = int64(value(c.Period)), value(c.Quota), int64(value(c.Shares))
		res.CpusetCpus, res.CpusetMems = c.Cpus, c.Mems
	}
	if m := r.Memory; m != nil {
		res.MemoryLimitInBytes, res.MemorySwapLimitInBytes = value(m.Limit), value(m.Swap)
	}
	if s.Process != nil {
		res.OomScoreAdj = int64(value(s.Process.OOMScoreAdj))
	}
	for _, l := range r.HugepageLimits {
		res.HugepageLimits = append(res.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: l.Pagesize, Limit: l.Limit})
	}
	return res
}

// value is what p points at, or zero.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
