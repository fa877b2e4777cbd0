package kubelet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Node is what of a node and of kubelet's settings the requests depend on.
type Node struct {
	CgroupVersion int   // 1 or 2
	Systemd       bool  // kubelet's cgroupDriver is systemd, not cgroupfs
	Memory        int64 // bytes
}

// CgroupParent is that of the Pod: GetPodContainerName of
// pkg/kubelet/cm/pod_container_manager_linux.go, beneath the default cgroupRoot.
func (n Node) CgroupParent(p *Pod) string {
	parts := []string{"kubepods"}
	if class := p.QoS(); class != Guaranteed {
		parts = append(parts, strings.ToLower(class))
	}
	parts = append(parts, "pod"+p.Metadata.UID)
	if !n.Systemd {
		return "/" + strings.Join(parts, "/")
	}
	path, slice := "", ""
	for _, part := range parts { // systemd names a slice after all above it, so that - means what / does
		slice = strings.TrimPrefix(slice+"-"+strings.ReplaceAll(part, "-", "_"), "-")
		path += "/" + slice + ".slice"
	}
	return path
}

// RunPodSandbox is the request that makes the Pod's sandbox:
// generatePodSandboxConfig of pkg/kubelet/kuberuntime.
func (n Node) RunPodSandbox(p *Pod, handler string) *runtimeapi.RunPodSandboxRequest {
	return &runtimeapi.RunPodSandboxRequest{Config: n.SandboxConfig(p), RuntimeHandler: handler}
}

// SandboxConfig is the Pod's config as kubelet sends it with the sandbox and again
// with each container.
func (n Node) SandboxConfig(p *Pod) *runtimeapi.PodSandboxConfig {
	m := p.Metadata
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: m.Name, Namespace: m.Namespace, Uid: m.UID},
		LogDirectory: "/var/log/pods/" + m.Namespace + "_" + m.Name + "_" + m.UID,
		Labels:       p.labels(m.Labels),
		Annotations:  map[string]string{"kubernetes.io/config.source": "api", "kubernetes.io/config.seen": "1970-01-01T00:00:00Z"},
		Linux:        n.sandboxLinux(p),
	}
	maps.Copy(config.Annotations, m.Annotations)
	if !p.Spec.HostNetwork {
		config.Hostname = cmp.Or(p.Spec.Hostname, strings.TrimRight(m.Name[:min(len(m.Name), maxHostname)], "-."))
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			config.PortMappings = append(config.PortMappings, &runtimeapi.PortMapping{
				Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[port.Protocol]),
				ContainerPort: port.ContainerPort, HostPort: port.HostPort, HostIp: port.HostIP,
			})
		}
	}
	return config
}

// labels adds those by which kubelet finds its pods again (newPodLabels).
func (p *Pod) labels(of map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, of)
	all["io.kubernetes.pod.name"] = p.Metadata.Name
	all["io.kubernetes.pod.namespace"] = p.Metadata.Namespace
	all["io.kubernetes.pod.uid"] = p.Metadata.UID
	return all
}

// maxHostname is that of Linux's utsname, HOST_NAME_MAX less 1.
const maxHostname = 63

func (n Node) sandboxLinux(p *Pod) *runtimeapi.LinuxPodSandboxConfig {
	need, may := p.sum(requests), p.sum(limits)
	request := need.milli("cpu")
	if _, given := need["cpu"]; !given {
		request = may.milli("cpu")
	}
	s := p.Spec.Security
	privileged := slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c Container) bool {
		return c.Security.Privileged
	})
	linux := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: n.CgroupParent(p),
		Sysctls:      map[string]string{},
		Resources:    n.linux(request, may.milli("cpu"), may.value("memory")),
		Overhead:     &runtimeapi.LinuxContainerResources{},
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: p.namespaces(), Privileged: privileged,
			RunAsUser: number(s.RunAsUser), RunAsGroup: number(s.RunAsGroup), SupplementalGroups: p.groups(),
			Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		},
	}
	if o := p.Spec.Overhead; o != nil { // convertOverheadToLinuxResources
		linux.Overhead = n.linux(o.milli("cpu"), o.milli("cpu"), o.value("memory"))
	}
	for _, sysctl := range s.Sysctls {
		linux.Sysctls[sysctl.Name] = sysctl.Value
	}
	return linux
}

// namespaces is NamespacesForPod of pkg/kubelet/kuberuntime/util.
func (p *Pod) namespaces() *runtimeapi.NamespaceOption {
	o := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	if p.Spec.HostNetwork {
		o.Network = runtimeapi.NamespaceMode_NODE
	}
	if p.Spec.HostIPC {
		o.Ipc = runtimeapi.NamespaceMode_NODE
	}
	if p.Spec.ShareProcessNamespace {
		o.Pid = runtimeapi.NamespaceMode_POD
	}
	if p.Spec.HostPID {
		o.Pid = runtimeapi.NamespaceMode_NODE
	}
	o.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
	if host := p.Spec.HostUsers; host != nil && !*host {
		ids := []*runtimeapi.IDMapping{{HostId: 65536, Length: 65536}} // kubelet takes a free range of this length, at random
		o.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}
	}
	return o
}

func (p *Pod) groups() []int64 {
	var all []int64
	if group := p.Spec.Security.FSGroup; group != nil {
		all = append(all, *group)
	}
	return append(all, p.Spec.Security.SupplementalGroups...)
}

func number(n *int64) *runtimeapi.Int64Value {
	if n == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *n}
}
