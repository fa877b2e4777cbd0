package docker

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The labels by which dockershim knows its containers.
const (
	typeLabel         = "io.kubernetes.docker.type"
	typeSandbox       = "podsandbox"
	typeContainer     = "container"
	sandboxIDLabel    = "io.kubernetes.sandbox.id"
	logPathLabel      = "io.kubernetes.container.logpath"
	podNameLabel      = "io.kubernetes.pod.name"
	podNamespaceLabel = "io.kubernetes.pod.namespace"
	podUIDLabel       = "io.kubernetes.pod.uid"
	containerLabel    = "io.kubernetes.container.name"
	annotationPrefix  = "annotation."
)

// plainAnnotationPrefix is that of the labels which are annotations of a container that Kubernetes
// did not make.
const plainAnnotationPrefix = "wasmproxy.io/annotation."

// defaultHandler is the runtime handler of a pod that asks for none, as koord-runtime-proxy names it.
const defaultHandler = "docker"

// A kind says what a container of Docker's is to Kubernetes.
type kind uint8

const (
	notOurs    kind = iota // no hook runs for it
	ofSandbox              // it is a pod
	ofPod                  // it is a container of a pod
	standalone             // Kubernetes did not make it; it is a pod and its only container
)

// kindOf tells what a container is by its labels. all says that containers get hooks which
// Kubernetes did not make.
func kindOf(labels map[string]string, all bool) kind {
	switch {
	case labels[typeLabel] == typeSandbox:
		return ofSandbox
	case labels[typeLabel] == typeContainer && labels[sandboxIDLabel] != "":
		return ofPod
	case all:
		return standalone
	}
	return notOurs
}

func (k kind) prefix() string {
	if k == standalone {
		return plainAnnotationPrefix
	}
	return annotationPrefix
}

// names are what dockershim puts into the name of a container.
type names struct {
	container string
	pod       *runtimeapi.PodSandboxMetadata
	attempt   uint32 // of the container, or of the sandbox
}

// namesOf reads k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT, after which dockershim puts a random
// part if the name was taken. Labels stand in for a name of another form. A standalone container
// is a pod of its own name in the namespace docker.
func namesOf(name string, labels map[string]string, k kind) (n names) {
	name = strings.TrimPrefix(name, "/")
	if k == standalone {
		return names{container: name, pod: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "docker"}}
	}
	parts := strings.Split(name, "_")
	if len(parts) < 6 || len(parts) > 7 || parts[0] != "k8s" {
		return names{container: labels[containerLabel], pod: &runtimeapi.PodSandboxMetadata{
			Name: labels[podNameLabel], Namespace: labels[podNamespaceLabel], Uid: labels[podUIDLabel],
		}}
	}
	attempt, _ := strconv.ParseUint(parts[5], 10, 32)
	n = names{container: parts[1], attempt: uint32(attempt)}
	n.pod = &runtimeapi.PodSandboxMetadata{Name: parts[2], Namespace: parts[3], Uid: parts[4]}
	if k == ofSandbox {
		n.pod.Attempt = n.attempt
	}
	return n
}

// split tells annotations from labels, which are all labels in Docker.
func split(all map[string]string, prefix string) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	for key, value := range all {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			annotations[name] = value
		} else {
			labels[key] = value
		}
	}
	return labels, annotations
}

// parentOf returns a cgroup parent as CRI has it: with the systemd driver, dockershim and
// Docker's users name the slice alone.
func parentOf(parent string) string {
	name, ok := strings.CutSuffix(parent, ".slice")
	if !ok || strings.Contains(parent, "/") {
		return parent
	}
	group := ""
	for i, r := range name {
		if r == '-' {
			group += "/" + name[:i] + ".slice"
		}
	}
	return group + "/" + parent
}

// podConfig is the pod of a sandbox, or of a standalone container. Its resources are those of the
// one container of Docker's that it is.
func podConfig(name string, c *container, k kind) *runtimeapi.PodSandboxConfig {
	labels, annotations := split(c.Labels, k.prefix())
	h := &c.HostConfig
	config := &runtimeapi.PodSandboxConfig{
		Metadata: namesOf(name, c.Labels, k).pod, Hostname: c.Hostname, Labels: labels, Annotations: annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: parentOf(h.CgroupParent), Sysctls: h.Sysctls,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				Privileged: h.Privileged, ReadonlyRootfs: h.ReadonlyRootfs,
				NamespaceOptions: &runtimeapi.NamespaceOption{Network: namespace(h.NetworkMode), Pid: namespace(cmp.Or(h.PidMode, "container")), Ipc: namespace(h.IpcMode)},
			},
		},
	}
	if k == ofSandbox {
		config.Linux.Resources = h.cri()
	}
	for _, inside := range slices.Sorted(maps.Keys(h.PortBindings)) {
		number, protocol, _ := strings.Cut(inside, "/")
		for _, b := range h.PortBindings[inside] {
			config.PortMappings = append(config.PortMappings, &runtimeapi.PortMapping{
				Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[strings.ToUpper(protocol)]),
				ContainerPort: portOf(number), HostPort: portOf(b.HostPort), HostIp: b.HostIp,
			})
		}
	}
	return config
}

func namespace(mode string) runtimeapi.NamespaceMode {
	switch {
	case mode == "host":
		return runtimeapi.NamespaceMode_NODE
	case strings.HasPrefix(mode, "container"):
		return runtimeapi.NamespaceMode_CONTAINER
	}
	return runtimeapi.NamespaceMode_POD
}

// cri returns resources as CRI has them. Docker's NanoCpus are a quota.
func (h *hostConfig) cri() *runtimeapi.LinuxContainerResources {
	r := h.resources.cri()
	r.OomScoreAdj = h.OomScoreAdj
	return r
}

// NanoCpus are billionths of a CPU, and to Docker a quota of a period in microseconds.
const (
	nanoSecond = 1_000_000_000
	nanoPeriod = 100_000
)

func (r *resources) cri() *runtimeapi.LinuxContainerResources {
	c := &runtimeapi.LinuxContainerResources{
		CpuShares: r.CpuShares, CpuPeriod: r.CpuPeriod, CpuQuota: r.CpuQuota, CpusetCpus: r.CpusetCpus, CpusetMems: r.CpusetMems,
		MemoryLimitInBytes: r.Memory, MemorySwapLimitInBytes: r.MemorySwap,
	}
	if r.Memory >= noMemoryLimit {
		c.MemoryLimitInBytes = -1
	}
	if r.NanoCpus > 0 && c.CpuQuota == 0 {
		c.CpuPeriod, c.CpuQuota = nanoPeriod, r.NanoCpus*nanoPeriod/nanoSecond
	}
	return c
}
