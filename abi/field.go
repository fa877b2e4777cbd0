package abi

// Object names what a field belongs to. Numbers from FirstHandle on are handles
// that pod_find and container_list gave out; they are valid during one call. QOSClass plus
// the number of a pod is the pod's QoS class.
type Object int32

// The objects that every event has.
const (
	Event     Object = 0 // the event
	Pod       Object = 1 // the event's pod
	Container Object = 2 // the event's container
	Node      Object = 3 // the node

	FirstHandle Object = 16 // the first handle

	// QOSClass is far above all handles. It has no fields, only the files of its cgroup.
	QOSClass Object = 1 << 16 // plus a pod: the pod's QoS class, whose cgroup can only be read
)

// String returns "event", "pod", "container", "node", "handle" or "QoS class".
func (o Object) String() string {
	if o >= QOSClass {
		return "QoS class"
	}
	names := [...]string{"event", "pod", "container", "node"}
	if o < 0 || int(o) >= len(names) {
		return "handle"
	}
	return names[o]
}

// Type says which getters and setters a field takes.
type Type uint8

// The types of fields.
const (
	Int64  Type = iota + 1 // get_i64, set_i64
	String                 // get, set_bytes; UTF-8 but for values that CRI gives as bytes
	Map                    // map_get, map_dump, map_set, map_del; from string to string
	List                   // list_dump, list_set; strings in an order
	Set                    // list_dump, list_add, list_del; elements that have a key each
)

// Field is the number of a field within its object. Numbers are never reused.
type Field int32

// Fields of the event.
const (
	EventHook     Field = 1  // the hook's number
	EventTime     Field = 2  // nanoseconds since the Unix epoch, as now() returns
	EventMethod   Field = 3  // the CRI method
	EventImage    Field = 4  // PullImage, RemoveImage
	EventImageRef Field = 5  // what PullImage answered
	EventCommand  Field = 6  // Exec, ExecSync
	EventTTY      Field = 7  // Exec, Attach: 0 or 1
	EventStdin    Field = 8  // Exec, Attach: 0 or 1
	EventTimeout  Field = 9  // ExecSync, StopContainer, CheckpointContainer
	EventExitCode Field = 10 // what ExecSync answered
	EventPorts    Field = 11 // PortForward
	EventLocation Field = 12 // CheckpointContainer, CheckpointPod, RestorePod: the archive
)

// Fields of a pod. The numbers 32–47 are its overhead, 64–79 its resources. The SDKs'
// getters of numbers, texts and lists are generated with these comments; one that begins with "whether" makes a truth of a number.
const (
	PodID               Field = 1 // the id of the pod's sandbox, "" before it is created
	PodName             Field = 2 // the pod's name
	PodNamespace        Field = 3 // the pod's Kubernetes namespace
	PodUID              Field = 4 // the pod's Kubernetes uid
	PodAttempt          Field = 5 // how often the pod's sandbox was made before
	PodRuntimeHandler   Field = 6 // the handler of the pod's RuntimeClass, "" for the default
	PodQoS              Field = 7 // the pod's Kubernetes QoS class: Guaranteed, Burstable or BestEffort
	PodCgroupParent     Field = 8 // the pod's cgroup as CRI names it: a path, or a systemd slice
	PodLabels           Field = 9
	PodAnnotations      Field = 10
	PodHostname         Field = 11 // the pod's host name
	PodState            Field = 12 // "ready" or "notready", "" before the pod is created
	PodSysctls          Field = 13
	PodLogDirectory     Field = 14 // the host's directory of the containers' logs
	PodNetworkNamespace Field = 15 // whose network the pod has: pod, container, node or target, as CRI's NamespaceMode
	PodPIDNamespace     Field = 16 // whose processes the containers see: pod, container, node or target
	PodIPCNamespace     Field = 17 // whose IPC the containers have: pod, container, node or target
	PodUserNamespace    Field = 18 // whose users the pod has: pod, container, node or target
	PodPrivileged       Field = 19 // whether the pod may hold privileged containers
	PodPortMappings     Field = 20 // the pod's ports, each as HOST_IP:HOST_PORT:CONTAINER_PORT/PROTOCOL
)

// Fields of a container, likewise. The numbers 32–47 are what it may do, and 64–79 its resources.
const (
	ContainerID                 Field = 1 // the container's id, "" before it is created
	ContainerName               Field = 2 // the container's name in its pod
	ContainerAttempt            Field = 3 // how often the container was created before
	ContainerImage              Field = 4 // the image as its user wrote it, "" if nobody told its name
	ContainerPodID              Field = 5
	ContainerLabels             Field = 9
	ContainerAnnotations        Field = 10
	ContainerEnv                Field = 11
	ContainerState              Field = 12 // "created", "running", "exited" or "unknown", "" before the container is created
	ContainerCommand            Field = 13 // the entrypoint, nothing for the image's
	ContainerArgs               Field = 14 // the arguments, nothing for the image's
	ContainerWorkingDir         Field = 15 // the directory that the container starts in, "" for the image's
	ContainerMounts             Field = 16
	ContainerDevices            Field = 17
	ContainerCDIDevices         Field = 18
	ContainerRunAsUser          Field = 19 // absent unless the request has it
	ContainerRunAsGroup         Field = 20 // absent unless the request has it
	ContainerRunAsUsername      Field = 21 // the user's name, if the request gives it
	ContainerSupplementalGroups Field = 22
	ContainerPrivileged         Field = 23 // whether the container is privileged
	ContainerReadonlyRootfs     Field = 24 // whether the container cannot write to its root
	ContainerLogPath            Field = 25 // the container's log, relative to the pod's directory
	ContainerImageID            Field = 26 // the image's id as the request has it, "" if it has the name alone
	ContainerImageRepoDigests   Field = 27 // the image in the registries that it was pulled from: registry/repository@digest

	ContainerAddCapabilities        Field = 32 // the Linux capabilities that the container gets beside the usual ones, such as NET_ADMIN; ALL is all
	ContainerDropCapabilities       Field = 33 // the usual Linux capabilities that the container does not get, such as NET_RAW; ALL is all
	ContainerAddAmbientCapabilities Field = 34 // the ambient Linux capabilities that the container gets
	ContainerNoNewPrivs             Field = 35 // whether no program of the container can gain privileges, such as by setuid
	ContainerSeccomp                Field = 36 // the seccomp profile: runtime/default, unconfined or localhost/FILE, "" if nobody says
	ContainerApparmor               Field = 37 // the AppArmor profile: runtime/default, unconfined or localhost/NAME, "" if nobody says
	ContainerImageVolumes           Field = 38
)

// Fields of LinuxContainerResources, relative to Overhead or Resources:
// PodQuota is Resources+CPUQuota, its overhead's is Overhead+CPUQuota.
// The SDKs' getters and setters of numbers and texts are generated with these comments.
const (
	CPUPeriod      Field = 0 // the CFS period in microseconds, 1000–1000000
	CPUQuota       Field = 1 // the CFS quota in microseconds per period, -1 for no limit
	CPUShares      Field = 2 // the relative weight, 2–262144, whatever the cgroup version
	MemoryLimit    Field = 3 // the memory limit in bytes
	OOMScoreAdj    Field = 4 // the adjustment of the OOM killer's score, -1000–1000
	CpusetCpus     Field = 5 // the CPUs that may be used, such as "0-3,7"
	CpusetMems     Field = 6 // the memory nodes that may be used, such as "0-1"
	HugepageLimits Field = 7 // page size ("2MB") to bytes in decimal
	Unified        Field = 8 // cgroup v2 file to value
	MemorySwap     Field = 9 // the limit of memory plus swap in bytes

	Overhead  Field = 32
	Resources Field = 64
)

// Fields of the node. The SDKs' getters are generated with these comments.
const (
	NodeCgroupVersion   Field = 1 // the version of the node's cgroup hierarchy, 1 or 2
	NodeRuntimeName     Field = 2 // the name of the container runtime behind the proxy, such as "containerd"
	NodeRuntimeVersion  Field = 3 // the version of the container runtime behind the proxy
	NodeCgroupDriver    Field = 4 // "systemd" or "cgroupfs", "" where the runtime does not say
	NodeCPUs            Field = 5 // how many CPUs of the node are online
	NodeMemory          Field = 6 // the node's memory in bytes
	NodeKernel          Field = 7 // the release of the node's kernel, as uname -r has it
	NodeRuntimeHandlers Field = 8 // the handlers that the container runtime has
)

// FieldInfo is a row of the table of fields.
type FieldInfo struct {
	Object   Object
	Field    Field
	Name     string // as CRI names it
	Type     Type
	Unit     string     // "" for plain numbers and strings
	Writable HookSet    // the hooks in which a plugin may set it
	Writing  Capability // what writing it needs
	Reading  Capability // what reading it needs
	Format   Format     // which values it takes
}

// Format says which values a writable field takes, of those of its type. Package plugin
// of the proxy checks them.
type Format uint8

// The formats.
const (
	AnyValue Format = iota
	ArgumentList
	CDIName
	CgroupFiles // of the table of cgroup files
	CPUList     // the kernel's list format, "0-3,7"
	DeviceRecord
	GroupList
	HandlerName
	ID // of a user or a group
	ImageName
	KeysOfPlugins // no key of kubelet's
	MemoryBytes
	MountRecord
	PageSizes
	ParentGroup // at or below the pod's own cgroup parent
	Path        // absolute and clean
	Period
	Quota
	Score
	Shares
	UserName
	Variables
)

// Range returns the numbers that a format takes, which are those of the kernel and runc, both
// ends included. -1 is no limit if unlimited is true. Without a range max is 0.
func (f Format) Range() (min, max int64, unlimited bool) {
	switch f {
	case MemoryBytes:
		return 1, 1<<63 - 1, true
	case Period:
		return 1_000, 1_000_000, false
	case Quota:
		return 1_000, 1<<44 - 1, true
	case Score:
		return -1_000, 1_000, false
	case Shares:
		return 2, 262_144, false
	case ID: // the largest user or group that Kubernetes takes
		return 0, 1<<31 - 1, false
	}
	return 0, 0, false
}

const (
	inRun    HookSet = 1 << PreRunPodSandbox
	inCreate HookSet = 1 << PreCreateContainer
	inUpdate HookSet = inCreate | 1<<PreUpdateContainerResources
	inPod    HookSet = 1 << PreUpdatePodSandboxResources
	inPull   HookSet = 1 << PrePullImage
)

// Fields is the table of fields. It is one literal, so that a guest that does
// not look into it does not carry it.
var Fields = []FieldInfo{
	{Event, EventHook, "hook", Int64, "", 0, 0, 0, 0},
	{Event, EventTime, "time", Int64, "ns", 0, 0, 0, 0},
	{Event, EventMethod, "method", String, "", 0, 0, 0, 0},
	{Event, EventImage, "image", String, "", inPull, WriteImage, 0, ImageName},
	{Event, EventImageRef, "image_ref", String, "", 0, 0, 0, 0},
	{Event, EventCommand, "command", List, "", 0, 0, 0, 0},
	{Event, EventTTY, "tty", Int64, "", 0, 0, 0, 0},
	{Event, EventStdin, "stdin", Int64, "", 0, 0, 0, 0},
	{Event, EventTimeout, "timeout", Int64, "s", 0, 0, 0, 0},
	{Event, EventExitCode, "exit_code", Int64, "", 0, 0, 0, 0},
	{Event, EventPorts, "ports", List, "", 0, 0, 0, 0},
	{Event, EventLocation, "location", String, "", 0, 0, 0, 0},

	{Pod, PodID, "id", String, "", 0, 0, 0, 0},
	{Pod, PodName, "name", String, "", 0, 0, 0, 0},
	{Pod, PodNamespace, "namespace", String, "", 0, 0, 0, 0},
	{Pod, PodUID, "uid", String, "", 0, 0, 0, 0},
	{Pod, PodAttempt, "attempt", Int64, "", 0, 0, 0, 0},
	{Pod, PodRuntimeHandler, "runtime_handler", String, "", inRun, WriteRuntimeHandler, 0, HandlerName},
	{Pod, PodQoS, "qos", String, "", 0, 0, 0, 0},
	{Pod, PodCgroupParent, "cgroup_parent", String, "", inRun | inCreate, WriteCgroupParent, 0, ParentGroup},
	{Pod, PodLabels, "labels", Map, "", inRun, WriteLabels, 0, KeysOfPlugins},
	{Pod, PodAnnotations, "annotations", Map, "", inRun, WriteAnnotations, 0, KeysOfPlugins},
	{Pod, PodHostname, "hostname", String, "", 0, 0, 0, 0},
	{Pod, PodState, "state", String, "", 0, 0, 0, 0},
	{Pod, PodSysctls, "sysctls", Map, "", 0, 0, 0, 0},
	{Pod, PodLogDirectory, "log_directory", String, "", 0, 0, 0, 0},
	{Pod, PodNetworkNamespace, "network_namespace", String, "", 0, 0, 0, 0},
	{Pod, PodPIDNamespace, "pid_namespace", String, "", 0, 0, 0, 0},
	{Pod, PodIPCNamespace, "ipc_namespace", String, "", 0, 0, 0, 0},
	{Pod, PodUserNamespace, "user_namespace", String, "", 0, 0, 0, 0},
	{Pod, PodPrivileged, "privileged", Int64, "", 0, 0, 0, 0},
	{Pod, PodPortMappings, "port_mappings", List, "", 0, 0, 0, 0},

	{Container, ContainerID, "id", String, "", 0, 0, 0, 0},
	{Container, ContainerName, "name", String, "", 0, 0, 0, 0},
	{Container, ContainerAttempt, "attempt", Int64, "", 0, 0, 0, 0},
	{Container, ContainerImage, "image", String, "", inCreate, WriteImage, 0, ImageName},
	{Container, ContainerPodID, "pod_sandbox_id", String, "", 0, 0, 0, 0},
	{Container, ContainerLabels, "labels", Map, "", 0, 0, 0, 0},
	{Container, ContainerAnnotations, "annotations", Map, "", inUpdate, WriteAnnotations, 0, KeysOfPlugins},
	{Container, ContainerEnv, "env", Map, "", inCreate, Env, Env, Variables},
	{Container, ContainerState, "state", String, "", 0, 0, 0, 0},
	{Container, ContainerCommand, "command", List, "", inCreate, WriteArgs, 0, ArgumentList},
	{Container, ContainerArgs, "args", List, "", inCreate, WriteArgs, 0, ArgumentList},
	{Container, ContainerWorkingDir, "working_dir", String, "", inCreate, WriteArgs, 0, Path},
	{Container, ContainerMounts, "mounts", Set, "", inCreate, WriteMounts, 0, MountRecord},
	{Container, ContainerDevices, "devices", Set, "", inCreate, WriteDevices, 0, DeviceRecord},
	{Container, ContainerCDIDevices, "cdi_devices", Set, "", inCreate, WriteCDI, 0, CDIName},
	{Container, ContainerRunAsUser, "run_as_user", Int64, "", inCreate, WriteUser, 0, ID},
	{Container, ContainerRunAsGroup, "run_as_group", Int64, "", inCreate, WriteUser, 0, ID},
	{Container, ContainerRunAsUsername, "run_as_username", String, "", inCreate, WriteUser, 0, UserName},
	{Container, ContainerSupplementalGroups, "supplemental_groups", Set, "", inCreate, WriteUser, 0, GroupList},
	{Container, ContainerPrivileged, "privileged", Int64, "", 0, 0, 0, 0},
	{Container, ContainerReadonlyRootfs, "readonly_rootfs", Int64, "", 0, 0, 0, 0},
	{Container, ContainerLogPath, "log_path", String, "", 0, 0, 0, 0},
	{Container, ContainerImageID, "image_id", String, "", 0, 0, 0, 0},
	{Container, ContainerImageRepoDigests, "image_repo_digests", List, "", 0, 0, 0, 0},
	{Container, ContainerAddCapabilities, "add_capabilities", List, "", 0, 0, 0, 0},
	{Container, ContainerDropCapabilities, "drop_capabilities", List, "", 0, 0, 0, 0},
	{Container, ContainerAddAmbientCapabilities, "add_ambient_capabilities", List, "", 0, 0, 0, 0},
	{Container, ContainerNoNewPrivs, "no_new_privs", Int64, "", 0, 0, 0, 0},
	{Container, ContainerSeccomp, "seccomp", String, "", 0, 0, 0, 0},
	{Container, ContainerApparmor, "apparmor", String, "", 0, 0, 0, 0},
	{Container, ContainerImageVolumes, "image_volumes", Map, "", 0, 0, 0, 0},

	{Node, NodeCgroupVersion, "cgroup_version", Int64, "", 0, 0, 0, 0},
	{Node, NodeRuntimeName, "runtime_name", String, "", 0, 0, 0, 0},
	{Node, NodeRuntimeVersion, "runtime_version", String, "", 0, 0, 0, 0},
	{Node, NodeCgroupDriver, "cgroup_driver", String, "", 0, 0, 0, 0},
	{Node, NodeCPUs, "cpus", Int64, "", 0, 0, 0, 0},
	{Node, NodeMemory, "memory", Int64, "bytes", 0, 0, 0, 0},
	{Node, NodeKernel, "kernel", String, "", 0, 0, 0, 0},
	{Node, NodeRuntimeHandlers, "runtime_handlers", List, "", 0, 0, 0, 0},

	{Pod, Overhead + CPUPeriod, "overhead.cpu_period", Int64, "µs", inPod, WriteResources, 0, Period},
	{Pod, Overhead + CPUQuota, "overhead.cpu_quota", Int64, "µs", inPod, WriteResources, 0, Quota},
	{Pod, Overhead + CPUShares, "overhead.cpu_shares", Int64, "", inPod, WriteResources, 0, Shares},
	{Pod, Overhead + MemoryLimit, "overhead.memory_limit_in_bytes", Int64, "bytes", inPod, WriteResources, 0, MemoryBytes},
	{Pod, Overhead + OOMScoreAdj, "overhead.oom_score_adj", Int64, "", inPod, WriteResources, 0, Score},
	{Pod, Overhead + CpusetCpus, "overhead.cpuset_cpus", String, "", inPod, WriteResources, 0, CPUList},
	{Pod, Overhead + CpusetMems, "overhead.cpuset_mems", String, "", inPod, WriteResources, 0, CPUList},
	{Pod, Overhead + HugepageLimits, "overhead.hugepage_limits", Map, "bytes", inPod, WriteResources, 0, PageSizes},
	{Pod, Overhead + Unified, "overhead.unified", Map, "", inPod, WriteUnified, 0, CgroupFiles},
	{Pod, Overhead + MemorySwap, "overhead.memory_swap_limit_in_bytes", Int64, "bytes", inPod, WriteResources, 0, MemoryBytes},

	{Pod, Resources + CPUPeriod, "resources.cpu_period", Int64, "µs", inPod, WriteResources, 0, Period},
	{Pod, Resources + CPUQuota, "resources.cpu_quota", Int64, "µs", inPod, WriteResources, 0, Quota},
	{Pod, Resources + CPUShares, "resources.cpu_shares", Int64, "", inPod, WriteResources, 0, Shares},
	{Pod, Resources + MemoryLimit, "resources.memory_limit_in_bytes", Int64, "bytes", inPod, WriteResources, 0, MemoryBytes},
	{Pod, Resources + OOMScoreAdj, "resources.oom_score_adj", Int64, "", inPod, WriteResources, 0, Score},
	{Pod, Resources + CpusetCpus, "resources.cpuset_cpus", String, "", inPod, WriteResources, 0, CPUList},
	{Pod, Resources + CpusetMems, "resources.cpuset_mems", String, "", inPod, WriteResources, 0, CPUList},
	{Pod, Resources + HugepageLimits, "resources.hugepage_limits", Map, "bytes", inPod, WriteResources, 0, PageSizes},
	{Pod, Resources + Unified, "resources.unified", Map, "", inPod, WriteUnified, 0, CgroupFiles},
	{Pod, Resources + MemorySwap, "resources.memory_swap_limit_in_bytes", Int64, "bytes", inPod, WriteResources, 0, MemoryBytes},

	{Container, Resources + CPUPeriod, "resources.cpu_period", Int64, "µs", inUpdate, WriteResources, 0, Period},
	{Container, Resources + CPUQuota, "resources.cpu_quota", Int64, "µs", inUpdate, WriteResources, 0, Quota},
	{Container, Resources + CPUShares, "resources.cpu_shares", Int64, "", inUpdate, WriteResources, 0, Shares},
	{Container, Resources + MemoryLimit, "resources.memory_limit_in_bytes", Int64, "bytes", inUpdate, WriteResources, 0, MemoryBytes},
	{Container, Resources + OOMScoreAdj, "resources.oom_score_adj", Int64, "", inUpdate, WriteResources, 0, Score},
	{Container, Resources + CpusetCpus, "resources.cpuset_cpus", String, "", inUpdate, WriteResources, 0, CPUList},
	{Container, Resources + CpusetMems, "resources.cpuset_mems", String, "", inUpdate, WriteResources, 0, CPUList},
	{Container, Resources + HugepageLimits, "resources.hugepage_limits", Map, "bytes", inUpdate, WriteResources, 0, PageSizes},
	{Container, Resources + Unified, "resources.unified", Map, "", inUpdate, WriteUnified, 0, CgroupFiles},
	{Container, Resources + MemorySwap, "resources.memory_swap_limit_in_bytes", Int64, "bytes", inUpdate, WriteResources, 0, MemoryBytes},
}

// RecordInfo says what an element of a Set is, where it is more than a string. It
// is entries as in a map, of which the one under Key is its key.
type RecordInfo struct {
	Object Object
	Field  Field
	Key    string
	Keys   []string // all of them, with the key
}

// Records is the table of Sets whose elements are records.
var Records = []RecordInfo{
	{Container, ContainerMounts, "container_path", []string{"container_path", "host_path", "readonly", "propagation", "selinux_relabel", "recursive_read_only"}},
	{Container, ContainerDevices, "container_path", []string{"container_path", "host_path", "permissions"}},
}

// RecordKeys returns the keys of the field's elements; nil if they are no records.
func (i FieldInfo) RecordKeys() []string {
	for _, r := range Records {
		if r.Object == i.Object && r.Field == i.Field {
			return r.Keys
		}
	}
	return nil
}

// HandleWritable reports whether a field may be set on a handle of a pod or a
// container, by a plugin with UpdateOthers: the resources of containers.
func HandleWritable(info FieldInfo) bool { return info.Object == Container && info.Field >= Resources }

// CgroupWritable returns the hooks in which cgroup_set takes this object. What a
// container's hook sets before the container runs is written once it has started.
func CgroupWritable(o Object) HookSet {
	switch o {
	case Pod:
		return HookSetOf(PreRunPodSandbox, PostRunPodSandbox, Synchronize)
	case Container:
		return HookSetOf(PreCreateContainer, PostCreateContainer, PreStartContainer, PostStartContainer,
			PreUpdateContainerResources, PostUpdateContainerResources)
	}
	return 0
}

// FieldOf finds a field's row. An object that is a handle has the fields of
// what it stands for; the caller passes Pod or Container.
func FieldOf(o Object, f Field) (FieldInfo, bool) {
	for _, info := range Fields {
		if info.Object == o && info.Field == f {
			return info, true
		}
	}
	return FieldInfo{}, false
}

// FieldByName finds a field by its object and name, such as "resources.cpu_quota".
func FieldByName(o Object, name string) (FieldInfo, bool) {
	for _, info := range Fields {
		if info.Object == o && info.Name == name {
			return info, true
		}
	}
	return FieldInfo{}, false
}
