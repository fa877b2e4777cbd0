package intercept

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// podView is a pod sandbox as plugins see it. What an update can change stands
// beside the config, so that the store's own is never touched.
type podView struct {
	id                  string
	runtimeHandler      string
	state               string                       // "" while it is made
	config              *runtimeapi.PodSandboxConfig // the request's own, or the store's and then not to be changed
	overhead, resources *runtimeapi.LinuxContainerResources
	cgroup              string     // the cgroup parent as kubelet named it, if that is known
	untold              pods.Parts // see [pods.Pod]
}

// requestedPod is the pod of a request that carries its config.
func requestedPod(id, handler string, config *runtimeapi.PodSandboxConfig) *podView {
	p := new(podView)
	p.request(id, handler, config)
	return p
}

func (p *podView) request(id, handler string, config *runtimeapi.PodSandboxConfig) {
	p.id, p.runtimeHandler, p.config = id, handler, config
	p.overhead, p.resources = config.GetLinux().GetOverhead(), config.GetLinux().GetResources()
	p.cgroup = config.GetLinux().GetCgroupParent()
}

func viewPod(p pods.Pod) *podView {
	v := requestedPod(p.ID, p.RuntimeHandler, p.Config)
	v.state, v.untold = podState(p.State), p.Untold
	v.cgroup = cmp.Or(p.Asked.GetLinux().GetCgroupParent(), v.cgroup, p.CgroupParent)
	return v
}

// parent is the pod's cgroup parent, with what plugins changed.
func (p *podView) parent() string { return cmp.Or(p.config.GetLinux().GetCgroupParent(), p.cgroup) }

// podState is CRI's name of a state without what all of them begin with.
func podState(s runtimeapi.PodSandboxState) string {
	switch s {
	case runtimeapi.PodSandboxState_SANDBOX_READY:
		return "ready"
	case runtimeapi.PodSandboxState_SANDBOX_NOTREADY:
		return "notready"
	}
	return s.String()
}

func (p *podView) int64(f abi.Field) (int64, bool) {
	switch {
	case f == abi.PodAttempt:
		return int64(p.config.GetMetadata().GetAttempt()), true
	case f == abi.PodPrivileged:
		return flag(p.config.GetLinux().GetSecurityContext().GetPrivileged()), true
	case f >= abi.Resources:
		return resourceInt64(p.resources, f-abi.Resources)
	case f >= abi.Overhead:
		return resourceInt64(p.overhead, f-abi.Overhead)
	}
	return 0, false
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (p *podView) text(f abi.Field) (string, bool) {
	meta := p.config.GetMetadata()
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
		return qosClass(p.parent()), true
	case abi.PodCgroupParent:
		return p.parent(), true
	case abi.PodHostname:
		return p.config.GetHostname(), true
	case abi.PodState:
		return p.state, true
	case abi.PodLogDirectory:
		return p.config.GetLogDirectory(), true
	}
	if f >= abi.Resources {
		return resourceText(p.resources, f-abi.Resources)
	}
	if f >= abi.Overhead {
		return resourceText(p.overhead, f-abi.Overhead)
	}
	return p.namespace(f)
}

// namespace returns the mode of one of the pod's Linux namespaces. What CRI
// leaves out is the pod's own, but for users, who are then the node's.
func (p *podView) namespace(f abi.Field) (string, bool) {
	options := p.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	mode := runtimeapi.NamespaceMode_NODE
	switch f {
	case abi.PodNetworkNamespace:
		mode = options.GetNetwork()
	case abi.PodPIDNamespace:
		mode = options.GetPid()
	case abi.PodIPCNamespace:
		mode = options.GetIpc()
	case abi.PodUserNamespace:
		if users := options.GetUsernsOptions(); users != nil {
			mode = users.GetMode()
		}
	default:
		return "", false
	}
	return namespaceMode(mode), true
}

// namespaceMode is CRI's name in lower case.
func namespaceMode(m runtimeapi.NamespaceMode) string {
	switch m {
	case runtimeapi.NamespaceMode_POD:
		return "pod"
	case runtimeapi.NamespaceMode_CONTAINER:
		return "container"
	case runtimeapi.NamespaceMode_NODE:
		return "node"
	case runtimeapi.NamespaceMode_TARGET:
		return "target"
	}
	return m.String()
}

func (p *podView) entries(f abi.Field) (iter.Seq2[string, string], bool) {
	if m, ok := p.strings(f); ok {
		return sorted(m), true
	}
	if f >= abi.Resources {
		return resourceEntries(p.resources, f-abi.Resources)
	}
	return resourceEntries(p.overhead, f-abi.Overhead)
}

// strings returns the fields that are maps in CRI too.
func (p *podView) strings(f abi.Field) (map[string]string, bool) {
	switch f {
	case abi.PodLabels:
		return p.config.GetLabels(), true
	case abi.PodAnnotations:
		return p.config.GetAnnotations(), true
	case abi.PodSysctls:
		return p.config.GetLinux().GetSysctls(), true
	}
	return nil, false
}

func (p *podView) lookup(f abi.Field, key string) (string, bool) {
	if m, ok := p.strings(f); ok {
		v, ok := m[key]
		return v, ok
	}
	entries, ok := p.entries(f)
	if !ok {
		return "", false
	}
	return find(entries, key)
}

func each[T any](all []T, f func(T) string) []string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = f(v)
	}
	return texts
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
