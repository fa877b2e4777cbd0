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
	containerNameLabel = "io.kubernetes.container.name"
)

var (
	crioPodOverhead  = [...]string{"pod-linux-overhead.crio.io", "io.kubernetes.cri-o.PodLinuxOverhead"}
	crioPodResources = [...]string{"pod-linux-resources.crio.io", "io.kubernetes.cri-o.PodLinuxResources"}
)

// podConfigOf makes a config of what the status and the runtime spec tell.
func podConfigOf(st *runtimeapi.PodSandboxStatus, spec *runtimeSpec) *runtimeapi.PodSandboxConfig {
	c := &runtimeapi.PodSandboxConfig{
		Metadata:    st.GetMetadata(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: spec.Annotations[crioCgroupParent],
			Overhead:     spec.annotated(crioPodOverhead[:]),
			Resources:    spec.annotated(crioPodResources[:]),
		},
	}
	// CRI-O adds a label of its own.
	if c.Labels[containerNameLabel] == "POD" {
		delete(c.Labels, containerNameLabel)
	}
	opts := st.GetLinux().GetNamespaces().GetOptions()
	if opts != nil {
		c.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: opts}
	}
	// The host's name is no pod's.
	if opts.GetNetwork() != runtimeapi.NamespaceMode_NODE {
		c.Hostname = spec.Hostname
	}
	if spec.Linux != nil {
		c.Linux.Sysctls = spec.Linux.Sysctl
	}
	return c
}

// unreportedOfPod are the parts that podConfigOf cannot know.
func (s *runtimeSpec) unreportedOfPod() Parts {
	if s.Annotations == nil { // there is no spec
		return allOfPod
	}
	return notInPodSpec
}

// unreported are the parts that containerConfigOf cannot know.
func (i *containerInfo) unreported() Parts {
	if i.RuntimeSpec.Process == nil {
		return allOfContainer
	}
	return notInSpec
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
func containerConfigOf(
	st *runtimeapi.ContainerStatus, spec *runtimeSpec, now *runtimeapi.LinuxContainerResources,
) *runtimeapi.ContainerConfig {
	c := &runtimeapi.ContainerConfig{
		Metadata:    st.GetMetadata(),
		Image:       st.GetImage(),
		Mounts:      st.GetMounts(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux:       &runtimeapi.LinuxContainerConfig{},
	}
	if p := spec.Process; p != nil {
		c.Command, c.WorkingDir = p.Args, p.Cwd
		for _, kv := range p.Env {
			k, v, _ := strings.Cut(kv, "=")
			c.Envs = append(c.Envs, &runtimeapi.KeyValue{Key: k, Value: []byte(v)})
		}
	}
	if adj := now.GetOomScoreAdj(); adj != 0 { // the one value that asOfNow does not take over
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{OomScoreAdj: adj}
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
