package intercept

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// podView is a pod sandbox as plugins see it.
type podView struct {
	id             string
	runtimeHandler string
	config         *runtimeapi.PodSandboxConfig // the request's own, or the store's and then not to be changed
}

// containerView is a container as plugins see it. What an update can change
// stands beside the config, so that the store's own is never touched.
type containerView struct {
	id, podID   string
	config      *runtimeapi.ContainerConfig
	annotations map[string]string
	resources   *runtimeapi.LinuxContainerResources // nil if there are none
}

func viewPod(p pods.Pod) *podView {
	return &podView{id: p.ID, runtimeHandler: p.RuntimeHandler, config: p.Config}
}

func viewContainer(c pods.Container) *containerView {
	return &containerView{
		id: c.ID, podID: c.PodID, config: c.Config,
		annotations: c.Config.GetAnnotations(), resources: c.Config.GetLinux().GetResources(),
	}
}

func (p *podView) int64(f abi.Field) (int64, bool) {
	linux := p.config.GetLinux()
	switch {
	case f == abi.PodAttempt:
		return int64(p.config.GetMetadata().GetAttempt()), true
	case f >= abi.Resources:
		return resourceInt64(linux.GetResources(), f-abi.Resources)
	case f >= abi.Overhead:
		return resourceInt64(linux.GetOverhead(), f-abi.Overhead)
	}
	return 0, false
}

func (p *podView) text(f abi.Field) (string, bool) {
	meta, linux := p.config.GetMetadata(), p.config.GetLinux()
	switch f {
	case abi.PodID:
		return p.id, true
	case abi.PodName:
		return meta.GetName(), true
	case abi.PodNamespace:
		return meta.GetNamespace(), true
	case abi.PodUID:
		return meta.GetUid(), true
	case abi.PodRuntimeHandler:
		return p.runtimeHandler, true
	case abi.PodQoS:
		return qosClass(linux.GetCgroupParent()), true
	case abi.PodCgroupParent:
		return linux.GetCgroupParent(), true
	case abi.PodHostname:
		return p.config.GetHostname(), true
	}
	if f >= abi.Resources {
		return resourceText(linux.GetResources(), f-abi.Resources)
	}
	return resourceText(linux.GetOverhead(), f-abi.Overhead)
}

func (p *podView) entries(f abi.Field) (iter.Seq2[string, string], bool) {
	switch f {
	case abi.PodLabels:
		return sorted(p.config.GetLabels()), true
	case abi.PodAnnotations:
		return sorted(p.config.GetAnnotations()), true
	}
	linux := p.config.GetLinux()
	if f >= abi.Resources {
		return resourceEntries(linux.GetResources(), f-abi.Resources)
	}
	return resourceEntries(linux.GetOverhead(), f-abi.Overhead)
}

func (p *podView) lookup(f abi.Field, key string) (string, bool) {
	switch f {
	case abi.PodLabels:
		v, ok := p.config.GetLabels()[key]
		return v, ok
	case abi.PodAnnotations:
		v, ok := p.config.GetAnnotations()[key]
		return v, ok
	}
	entries, ok := p.entries(f)
	if !ok {
		return "", false
	}
	return find(entries, key)
}

func (c *containerView) int64(f abi.Field) (int64, bool) {
	if f == abi.ContainerAttempt {
		return int64(c.config.GetMetadata().GetAttempt()), true
	}
	return resourceInt64(c.resources, f-abi.Resources)
}

func (c *containerView) text(f abi.Field) (string, bool) {
	switch f {
	case abi.ContainerID:
		return c.id, true
	case abi.ContainerName:
		return c.config.GetMetadata().GetName(), true
	case abi.ContainerImage:
		return image(c.config.GetImage()), true
	case abi.ContainerPodID:
		return c.podID, true
	}
	return resourceText(c.resources, f-abi.Resources)
}

func (c *containerView) entries(f abi.Field) (iter.Seq2[string, string], bool) {
	switch f {
	case abi.ContainerLabels:
		return sorted(c.config.GetLabels()), true
	case abi.ContainerAnnotations:
		return sorted(c.annotations), true
	case abi.ContainerEnv:
		return env(c.config.GetEnvs()), true
	}
	return resourceEntries(c.resources, f-abi.Resources)
}

func (c *containerView) lookup(f abi.Field, key string) (string, bool) {
	switch f {
	case abi.ContainerLabels:
		v, ok := c.config.GetLabels()[key]
		return v, ok
	case abi.ContainerAnnotations:
		v, ok := c.annotations[key]
		return v, ok
	}
	entries, ok := c.entries(f)
	if !ok {
		return "", false
	}
	return find(entries, key)
}

// image returns the image as its user wrote it, where the caller says so.
func image(spec *runtimeapi.ImageSpec) string {
	if asked := spec.GetUserSpecifiedImage(); asked != "" {
		return asked
	}
	return spec.GetImage()
}

// qosClass reads the pod's QoS class off the cgroup parent that kubelet makes
// for it: CRI has no field for it, and kubelet puts guaranteed pods at the top.
func qosClass(cgroupParent string) string {
	switch {
	case strings.Contains(cgroupParent, "besteffort"):
		return "BestEffort"
	case strings.Contains(cgroupParent, "burstable"):
		return "Burstable"
	case strings.Contains(cgroupParent, "kubepods"):
		return "Guaranteed"
	}
	return ""
}

func resourceInt64(r *runtimeapi.LinuxContainerResources, f abi.Field) (int64, bool) {
	switch f {
	case abi.CPUPeriod:
		return r.GetCpuPeriod(), true
	case abi.CPUQuota:
		return r.GetCpuQuota(), true
	case abi.CPUShares:
		return r.GetCpuShares(), true
	case abi.MemoryLimit:
		return r.GetMemoryLimitInBytes(), true
	case abi.OOMScoreAdj:
		return r.GetOomScoreAdj(), true
	case abi.MemorySwap:
		return r.GetMemorySwapLimitInBytes(), true
	}
	return 0, false
}

func resourceText(r *runtimeapi.LinuxContainerResources, f abi.Field) (string, bool) {
	switch f {
	case abi.CpusetCpus:
		return r.GetCpusetCpus(), true
	case abi.CpusetMems:
		return r.GetCpusetMems(), true
	}
	return "", false
}

func resourceEntries(r *runtimeapi.LinuxContainerResources, f abi.Field) (iter.Seq2[string, string], bool) {
	switch f {
	case abi.HugepageLimits:
		return hugepages(r.GetHugepageLimits()), true
	case abi.Unified:
		return sorted(r.GetUnified()), true
	}
	return nil, false
}

func hugepages(limits []*runtimeapi.HugepageLimit) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, l := range limits {
			if !yield(l.GetPageSize(), strconv.FormatUint(l.GetLimit(), 10)) {
				return
			}
		}
	}
}

func env(vars []*runtimeapi.KeyValue) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, v := range vars {
			if !yield(v.GetKey(), string(v.GetValue())) {
				return
			}
		}
	}
}

func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// find returns the last entry of this name, which is the one that counts in an
// environment.
func find(entries iter.Seq2[string, string], key string) (value string, ok bool) {
	for k, v := range entries {
		if k == key {
			value, ok = v, true
		}
	}
	return value, ok
}
