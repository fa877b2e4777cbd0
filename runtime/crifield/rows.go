package crifield

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Short names, for tables in which a field is one line.
type (
	containerConfig   = runtimeapi.ContainerConfig
	containerSecurity = runtimeapi.LinuxContainerSecurityContext
	keyValue          = runtimeapi.KeyValue
	capability        = runtimeapi.Capability
	namespaceMode     = runtimeapi.NamespaceMode
)

// The modes of namespaces that a pod without namespace options has.
const (
	ofPod  = runtimeapi.NamespaceMode_POD
	ofNode = runtimeapi.NamespaceMode_NODE
)

// row is one field.
type row struct {
	access
	part pods.Parts // see [pods.Pod]
}

// table has the rows by object and field: each access looks one up.
var table = index()

func index() (all [abi.Node + 1][plugin.MaxField]row) {
	for object, rows := range map[abi.Object][]map[abi.Field]access{
		abi.Event:     {eventRows},
		abi.Pod:       {podRows, resourceRows(abi.Overhead, podOverhead), resourceRows(abi.Resources, podResources)},
		abi.Container: {containerRows, resourceRows(abi.Resources, containerResources)},
		abi.Node:      {nodeRows},
	} {
		for _, rows := range rows {
			for field, a := range rows {
				all[object][field] = row{a, pods.PartOf(field)}
			}
		}
	}
	return all
}

// The messages and views that fields are in.
var (
	pod         = always(func(o Object) *Pod { return o.Pod })
	podConfig   = inside(pod, func(p *Pod) **runtimeapi.PodSandboxConfig { return &p.Config })
	podMeta     = inside(podConfig, func(c *runtimeapi.PodSandboxConfig) **runtimeapi.PodSandboxMetadata { return &c.Metadata })
	podLinux    = inside(podConfig, func(c *runtimeapi.PodSandboxConfig) **runtimeapi.LinuxPodSandboxConfig { return &c.Linux })
	podSecurity = inside(podLinux, func(l *runtimeapi.LinuxPodSandboxConfig) **runtimeapi.LinuxSandboxSecurityContext {
		return &l.SecurityContext
	})
	namespaces = inside(podSecurity, func(s *runtimeapi.LinuxSandboxSecurityContext) **runtimeapi.NamespaceOption {
		return &s.NamespaceOptions
	})
	users = inside(namespaces, func(n *runtimeapi.NamespaceOption) **runtimeapi.UserNamespace { return &n.UsernsOptions })

	podOverhead  = resources(func(o Object) *Resources { return &o.Pod.Overhead })
	podResources = resources(func(o Object) *Resources { return &o.Pod.Resources })

	container      = always(func(o Object) *Container { return o.Container })
	config         = inside(container, func(c *Container) **containerConfig { return &c.Config })
	containerMeta  = inside(config, func(c *containerConfig) **runtimeapi.ContainerMetadata { return &c.Metadata })
	containerLinux = inside(config, func(c *containerConfig) **runtimeapi.LinuxContainerConfig { return &c.Linux })
	security       = inside(containerLinux, func(l *runtimeapi.LinuxContainerConfig) **containerSecurity {
		return &l.SecurityContext
	})
	capabilities = inside(security, func(s *containerSecurity) **capability { return &s.Capabilities })

	containerResources = resources(func(o Object) *Resources { return &o.Container.Resources })

	node = always(func(o Object) *Node { return o.Node })
)

func resources(of func(Object) *Resources) part[runtimeapi.LinuxContainerResources] {
	return part[runtimeapi.LinuxContainerResources]{
		of: func(o Object) *runtimeapi.LinuxContainerResources { return of(o).Now },
		make: func(o Object) *runtimeapi.LinuxContainerResources {
			r := of(o)
			switch {
			case r.Now == nil:
				r.Now = &runtimeapi.LinuxContainerResources{}
			case !r.Own:
				r.was, r.Now = r.Now, proto.CloneOf(r.Now)
			}
			r.Own = true
			return r.Now
		},
	}
}

var podRows = map[abi.Field]access{
	abi.PodID:               text(pod, func(p *Pod) *string { return &p.ID }),
	abi.PodName:             text(podMeta, func(m *runtimeapi.PodSandboxMetadata) *string { return &m.Name }),
	abi.PodNamespace:        text(podMeta, func(m *runtimeapi.PodSandboxMetadata) *string { return &m.Namespace }),
	abi.PodUID:              text(podMeta, func(m *runtimeapi.PodSandboxMetadata) *string { return &m.Uid }),
	abi.PodAttempt:          number(podMeta, func(m *runtimeapi.PodSandboxMetadata) *uint32 { return &m.Attempt }),
	abi.PodRuntimeHandler:   text(pod, func(p *Pod) *string { return &p.RuntimeHandler }),
	abi.PodQoS:              {text: func(o Object) (string, bool) { return qosClass(o.Pod.Parent()), true }},
	abi.PodCgroupParent:     cgroupParent(),
	abi.PodLabels:           stringMap(podConfig, func(c *runtimeapi.PodSandboxConfig) *map[string]string { return &c.Labels }),
	abi.PodAnnotations:      stringMap(podConfig, func(c *runtimeapi.PodSandboxConfig) *map[string]string { return &c.Annotations }),
	abi.PodHostname:         text(podConfig, func(c *runtimeapi.PodSandboxConfig) *string { return &c.Hostname }),
	abi.PodState:            text(pod, func(p *Pod) *string { return &p.State }),
	abi.PodSysctls:          stringMap(podLinux, func(l *runtimeapi.LinuxPodSandboxConfig) *map[string]string { return &l.Sysctls }),
	abi.PodLogDirectory:     text(podConfig, func(c *runtimeapi.PodSandboxConfig) *string { return &c.LogDirectory }),
	abi.PodNetworkNamespace: namespace(namespaces, func(n *runtimeapi.NamespaceOption) *namespaceMode { return &n.Network }, ofPod),
	abi.PodPIDNamespace:     namespace(namespaces, func(n *runtimeapi.NamespaceOption) *namespaceMode { return &n.Pid }, ofPod),
	abi.PodIPCNamespace:     namespace(namespaces, func(n *runtimeapi.NamespaceOption) *namespaceMode { return &n.Ipc }, ofPod),
	abi.PodUserNamespace:    namespace(users, func(u *runtimeapi.UserNamespace) *namespaceMode { return &u.Mode }, ofNode),
	abi.PodPrivileged:       flag(podSecurity, func(s *runtimeapi.LinuxSandboxSecurityContext) *bool { return &s.Privileged }),
	abi.PodPortMappings:     portMappings(),
}

var containerRows = map[abi.Field]access{
	abi.ContainerID:                 text(container, func(c *Container) *string { return &c.ID }),
	abi.ContainerName:               text(containerMeta, func(m *runtimeapi.ContainerMetadata) *string { return &m.Name }),
	abi.ContainerAttempt:            number(containerMeta, func(m *runtimeapi.ContainerMetadata) *uint32 { return &m.Attempt }),
	abi.ContainerImage:              containerImage(),
	abi.ContainerPodID:              text(container, func(c *Container) *string { return &c.PodID }),
	abi.ContainerLabels:             stringMap(config, func(c *containerConfig) *map[string]string { return &c.Labels }),
	abi.ContainerAnnotations:        stringMap(container, func(c *Container) *map[string]string { return &c.Annotations }),
	abi.ContainerEnv:                pairs(config, func(c *containerConfig) *[]*keyValue { return &c.Envs }, variable, setVariable),
	abi.ContainerState:              text(container, func(c *Container) *string { return &c.State }),
	abi.ContainerCommand:            stringList(config, func(c *containerConfig) *[]string { return &c.Command }),
	abi.ContainerArgs:               stringList(config, func(c *containerConfig) *[]string { return &c.Args }),
	abi.ContainerWorkingDir:         text(config, func(c *containerConfig) *string { return &c.WorkingDir }),
	abi.ContainerMounts:             set(config, func(c *containerConfig) *[]*runtimeapi.Mount { return &c.Mounts }, mounts),
	abi.ContainerDevices:            set(config, func(c *containerConfig) *[]*runtimeapi.Device { return &c.Devices }, devices),
	abi.ContainerCDIDevices:         set(config, func(c *containerConfig) *[]*runtimeapi.CDIDevice { return &c.CDIDevices }, cdiDevices),
	abi.ContainerRunAsUser:          user(optional(security, func(s *containerSecurity) **runtimeapi.Int64Value { return &s.RunAsUser })),
	abi.ContainerRunAsGroup:         optional(security, func(s *containerSecurity) **runtimeapi.Int64Value { return &s.RunAsGroup }),
	abi.ContainerRunAsUsername:      user(text(security, func(s *containerSecurity) *string { return &s.RunAsUsername })),
	abi.ContainerSupplementalGroups: set(security, func(s *containerSecurity) *[]int64 { return &s.SupplementalGroups }, groups),
	abi.ContainerPrivileged:         flag(security, func(s *containerSecurity) *bool { return &s.Privileged }),
	abi.ContainerReadonlyRootfs:     flag(security, func(s *containerSecurity) *bool { return &s.ReadonlyRootfs }),
	abi.ContainerLogPath:            text(config, func(c *containerConfig) *string { return &c.LogPath }),
	abi.ContainerImageID:            imageID(),
	abi.ContainerImageRepoDigests:   stringList(container, func(c *Container) *[]string { return &c.ImageRepoDigests }),

	abi.ContainerAddCapabilities:        stringList(capabilities, func(c *capability) *[]string { return &c.AddCapabilities }),
	abi.ContainerDropCapabilities:       stringList(capabilities, func(c *capability) *[]string { return &c.DropCapabilities }),
	abi.ContainerAddAmbientCapabilities: stringList(capabilities, func(c *capability) *[]string { return &c.AddAmbientCapabilities }),
	abi.ContainerNoNewPrivs:             flag(security, func(s *containerSecurity) *bool { return &s.NoNewPrivs }),
	abi.ContainerSeccomp:                seccomp(),
	abi.ContainerApparmor:               apparmor(),
	abi.ContainerImageVolumes:           imageVolumes(),
}

// resourceRows are those of one LinuxContainerResources.
func resourceRows(base abi.Field, of part[runtimeapi.LinuxContainerResources]) map[abi.Field]access {
	type res = runtimeapi.LinuxContainerResources
	return map[abi.Field]access{
		base + abi.CPUPeriod:      number(of, func(r *res) *int64 { return &r.CpuPeriod }),
		base + abi.CPUQuota:       number(of, func(r *res) *int64 { return &r.CpuQuota }),
		base + abi.CPUShares:      number(of, func(r *res) *int64 { return &r.CpuShares }),
		base + abi.MemoryLimit:    number(of, func(r *res) *int64 { return &r.MemoryLimitInBytes }),
		base + abi.OOMScoreAdj:    number(of, func(r *res) *int64 { return &r.OomScoreAdj }),
		base + abi.CpusetCpus:     text(of, func(r *res) *string { return &r.CpusetCpus }),
		base + abi.CpusetMems:     text(of, func(r *res) *string { return &r.CpusetMems }),
		base + abi.HugepageLimits: pairs(of, func(r *res) *[]*runtimeapi.HugepageLimit { return &r.HugepageLimits }, hugepage, setHugepage),
		base + abi.Unified:        stringMap(of, func(r *res) *map[string]string { return &r.Unified }),
		base + abi.MemorySwap:     number(of, func(r *res) *int64 { return &r.MemorySwapLimitInBytes }),
	}
}

var nodeRows = map[abi.Field]access{
	abi.NodeCgroupVersion:   number(node, func(n *Node) *int { return &n.CgroupVersion }),
	abi.NodeRuntimeName:     text(node, func(n *Node) *string { return &n.RuntimeName }),
	abi.NodeRuntimeVersion:  text(node, func(n *Node) *string { return &n.RuntimeVersion }),
	abi.NodeCgroupDriver:    text(node, func(n *Node) *string { return &n.CgroupDriver }),
	abi.NodeCPUs:            number(node, func(n *Node) *int { return &n.CPUs }),
	abi.NodeMemory:          number(node, func(n *Node) *int64 { return &n.Memory }),
	abi.NodeKernel:          text(node, func(n *Node) *string { return &n.Kernel }),
	abi.NodeRuntimeHandlers: stringList(node, func(n *Node) *[]string { return &n.RuntimeHandlers }),
}

// cgroupParent is what the config says, or, where nothing changed that, what kubelet said.
func cgroupParent() access {
	a := text(podLinux, func(l *runtimeapi.LinuxPodSandboxConfig) *string { return &l.CgroupParent })
	a.text = func(o Object) (string, bool) { return o.Pod.Parent(), true }
	return a
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

// namespace is the mode of a Linux namespace, CRI's name in lower case. absent is what CRI means
// if the message is left out.
func namespace[M any](p part[M], at func(*M) *runtimeapi.NamespaceMode, absent runtimeapi.NamespaceMode) access {
	return access{
		text: func(o Object) (string, bool) {
			mode := absent
			if m := p.of(o); m != nil {
				mode = *at(m)
			}
			return namespaceModes.of(int32(mode)), true
		},
		set: func(o Object, c *plugin.Change) {
			*at(p.make(o)) = runtimeapi.NamespaceMode(namespaceModes.value(c.Text))
		},
	}
}

// user is one of the two ways to name a user, of which CRI takes one.
func user(a access) access {
	set := a.set
	a.set = func(o Object, c *plugin.Change) {
		s := security.make(o)
		s.RunAsUser, s.RunAsUsername = nil, ""
		set(o, c)
	}
	return a
}
