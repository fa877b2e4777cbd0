package pods

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// podConfigOf makes a config of what the status and the runtime spec tell.
func podConfigOf(st *runtimeapi.PodSandboxStatus, spec *runtimeSpec) *runtimeapi.PodSandboxConfig {
	c := &runtimeapi.PodSandboxConfig{
		Metadata:    st.GetMetadata(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: cmp.Or(spec.annotated(func(r dialect.Runtime) []string { return r.CgroupParent })...),
			Overhead:     resourcesIn(spec.annotated(func(r dialect.Runtime) []string { return r.PodOverhead })),
			Resources:    resourcesIn(spec.annotated(func(r dialect.Runtime) []string { return r.PodResources })),
		},
	}
	for _, r := range dialect.Runtimes {
		maps.DeleteFunc(c.Labels, func(label, value string) bool { return value != "" && r.PodLabels[label] == value })
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

// containerConfigOf makes a config of what the status and the runtime spec tell.
// Command is the whole argument vector, and env has the image's variables too:
// a spec does not tell them apart.
func containerConfigOf(
	st *runtimeapi.ContainerStatus, spec *runtimeSpec, now *runtimeapi.LinuxContainerResources,
) *runtimeapi.ContainerConfig {
	c := &runtimeapi.ContainerConfig{
		Metadata:    st.GetMetadata(),
		Image:       imageReported(st.GetImageId(), imageNameOf(st, spec)),
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

// imageNameOf is the image's name as the container's request had it. CRI-O keeps that in an annotation, and tells in the status
// any name that the image has. Others tell one name, of whichever they know.
func imageNameOf(st *runtimeapi.ContainerStatus, spec *runtimeSpec) string {
	return cmp.Or(append(spec.annotated(func(r dialect.Runtime) []string { return r.Image }), st.GetImage().GetImage())...)
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
