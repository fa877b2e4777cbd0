package pods

import (
	"encoding/json"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI-O keeps what the runtime spec has no place for in annotations of the spec
// (internal/annotations and pkg/annotations/v2 in its source; the last two have
// had two names).
const (
	crioCgroupParent   = "io.kubernetes.cri-o.CgroupParent"
	crioRuntimeHandler = "io.kubernetes.cri-o.RuntimeHandler"
)

var (
	crioPodOverhead  = [...]string{"pod-linux-overhead.crio.io", "io.kubernetes.cri-o.PodLinuxOverhead"}
	crioPodResources = [...]string{"pod-linux-resources.crio.io", "io.kubernetes.cri-o.PodLinuxResources"}
)

// podConfigOf makes a config of what the status and the runtime spec tell.
func podConfigOf(st *runtimeapi.PodSandboxStatus, spec *runtimeSpec) *runtimeapi.PodSandboxConfig {
	linux := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: spec.Annotations[crioCgroupParent],
		Overhead:     spec.annotated(crioPodOverhead[:]),
		Resources:    spec.annotated(crioPodResources[:]),
	}
	if opts := st.GetLinux().GetNamespaces().GetOptions(); opts != nil {
		linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: opts}
	}
	if spec.Linux != nil {
		linux.Sysctls = spec.Linux.Sysctl
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata:    st.GetMetadata(),
		Hostname:    spec.Hostname,
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux:       linux,
	}
}

// annotated reads the resources that an annotation of one of these names has,
// or nil.
func (s *runtimeSpec) annotated(names []string) *runtimeapi.LinuxContainerResources {
	for _, name := range names {
		var res *runtimeapi.LinuxContainerResources
		if err := json.Unmarshal([]byte(s.Annotations[name]), &res); err == nil && res != nil {
			return res
		}
	}
	return nil
}

// containerConfigOf makes a config of what the status and the runtime spec tell.
// Command is the whole argument vector, and env has the image's variables too:
// a spec does not tell them apart.
func containerConfigOf(st *runtimeapi.ContainerStatus, spec *runtimeSpec, now *runtimeapi.LinuxContainerResources) *runtimeapi.ContainerConfig {
	c := &runtimeapi.ContainerConfig{
		Metadata:    st.GetMetadata(),
		Image:       st.GetImage(),
		Mounts:      st.GetMounts(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
	}
	if p := spec.Process; p != nil {
		c.Command, c.WorkingDir = p.Args, p.Cwd
		for _, kv := range p.Env {
			k, v, _ := strings.Cut(kv, "=")
			c.Envs = append(c.Envs, &runtimeapi.KeyValue{Key: k, Value: []byte(v)})
		}
	}
	if now != nil {
		// The one value that asOfNow does not take over.
		c.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: now.GetOomScoreAdj()}}
	}
	return c
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
