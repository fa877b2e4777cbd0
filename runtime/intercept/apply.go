package intercept

import (
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// place is somewhere a change lands: the parts of one message or view that
// plugins can change. What it does not have is nil. The functions make what is
// absent, so that a change never finds a nil message.
type place struct {
	object       abi.Object
	labels       *map[string]string
	annotations  *map[string]string
	env          *[]*runtimeapi.KeyValue
	resources    func() *runtimeapi.LinuxContainerResources
	cgroupParent func(string)
}

// Apply implements plugin.Subject. Cgroup files are no part of a message: they
// are written by whoever runs the call.
func (e *event) Apply(changes []plugin.Change) {
	for _, c := range changes {
		for _, p := range e.places {
			if p.object == c.Object && c.Op != plugin.WriteFile {
				p.apply(c)
			}
		}
	}
}

func (p *place) apply(c plugin.Change) {
	switch {
	case c.Object == abi.Pod && c.Field == abi.PodCgroupParent:
		p.cgroupParent(c.Text)
	case c.Object == abi.Pod && c.Field == abi.PodLabels:
		setEntry(p.labels, c)
	case c.Object == abi.Pod && c.Field == abi.PodAnnotations,
		c.Object == abi.Container && c.Field == abi.ContainerAnnotations:
		setEntry(p.annotations, c)
	case c.Object == abi.Container && c.Field == abi.ContainerEnv:
		setEnv(p.env, c)
	case c.Object == abi.Container && p.resources != nil:
		setResource(p.resources(), c)
	}
}

func setEntry(m *map[string]string, c plugin.Change) {
	if m == nil {
		return
	}
	if c.Op == plugin.DeleteEntry {
		delete(*m, c.Key)
		return
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[c.Key] = c.Text
}

// setEnv replaces the last variable of the name and removes earlier ones, so
// that the order of the others stays and the new value is the one that counts.
func setEnv(vars *[]*runtimeapi.KeyValue, c plugin.Change) {
	if vars == nil {
		return
	}
	last := -1
	for i, v := range *vars {
		if v.GetKey() == c.Key {
			last = i
		}
	}
	if c.Op == plugin.SetEntry && last < 0 {
		*vars = append(*vars, &runtimeapi.KeyValue{Key: c.Key, Value: []byte(c.Text)})
		return
	}
	if c.Op == plugin.SetEntry {
		(*vars)[last].Value = []byte(c.Text)
	}
	kept := (*vars)[:0]
	for i, v := range *vars {
		if v.GetKey() != c.Key || i == last && c.Op == plugin.SetEntry {
			kept = append(kept, v)
		}
	}
	*vars = kept
}

func setResource(r *runtimeapi.LinuxContainerResources, c plugin.Change) {
	switch c.Field - abi.Resources {
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

func setHugepages(r *runtimeapi.LinuxContainerResources, c plugin.Change) {
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
