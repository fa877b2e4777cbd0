package abi

// Object names what a field belongs to. Numbers from FirstHandle on are handles
// that pod_find and container_list gave out; they are valid during one call.
type Object int32

// The objects that every event has.
const (
	Event     Object = 0
	Pod       Object = 1
	Container Object = 2
	Node      Object = 3

	FirstHandle Object = 16
)

// String returns "event", "pod", "container", "node" or "handle".
func (o Object) String() string {
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
	Map                    // map_get, map_set, map_del; from string to string
)

// Field is the number of a field within its object. Numbers are never reused.
type Field int32

// Fields of the event.
const (
	EventHook Field = 1 // the hook's number
	EventTime Field = 2 // nanoseconds since the Unix epoch, as now() returns
)

// Fields of a pod. The numbers 32–47 are its overhead, 64–79 its resources.
const (
	PodID             Field = 1
	PodName           Field = 2
	PodNamespace      Field = 3
	PodUID            Field = 4
	PodAttempt        Field = 5
	PodRuntimeHandler Field = 6
	PodQoS            Field = 7
	PodCgroupParent   Field = 8
	PodLabels         Field = 9
	PodAnnotations    Field = 10
	PodHostname       Field = 11
)

// Fields of a container. The numbers 64–79 are its resources.
const (
	ContainerID          Field = 1
	ContainerName        Field = 2
	ContainerAttempt     Field = 3
	ContainerImage       Field = 4
	ContainerPodID       Field = 5
	ContainerLabels      Field = 9
	ContainerAnnotations Field = 10
	ContainerEnv         Field = 11
)

// Fields of LinuxContainerResources, relative to Overhead or Resources:
// PodQuota is Resources+CPUQuota, its overhead's is Overhead+CPUQuota.
const (
	CPUPeriod      Field = 0 // µs
	CPUQuota       Field = 1 // µs per period; -1 is unlimited
	CPUShares      Field = 2
	MemoryLimit    Field = 3 // bytes
	OOMScoreAdj    Field = 4
	CpusetCpus     Field = 5 // list format, "0-3,7"
	CpusetMems     Field = 6
	HugepageLimits Field = 7 // page size ("2MB") to bytes in decimal
	Unified        Field = 8 // cgroup v2 file to value
	MemorySwap     Field = 9 // bytes, memory plus swap

	Overhead  Field = 32
	Resources Field = 64
)

// Fields of the node.
const (
	NodeCgroupVersion  Field = 1 // 1 or 2
	NodeRuntimeName    Field = 2
	NodeRuntimeVersion Field = 3
)

// FieldInfo is a row of the table of fields.
type FieldInfo struct {
	Object   Object
	Field    Field
	Name     string // as CRI names it
	Type     Type
	Unit     string  // "" for plain numbers and strings
	Writable HookSet // the hooks in which a plugin may set it
}

const (
	inRun    HookSet = 1 << PreRunPodSandbox
	inCreate HookSet = 1 << PreCreateContainer
	inUpdate HookSet = inCreate | 1<<PreUpdateContainerResources
)

// Fields is the table of fields. It is one literal, so that a guest that does
// not look into it does not carry it.
var Fields = []FieldInfo{
	{Event, EventHook, "hook", Int64, "", 0},
	{Event, EventTime, "time", Int64, "ns", 0},

	{Pod, PodID, "id", String, "", 0},
	{Pod, PodName, "name", String, "", 0},
	{Pod, PodNamespace, "namespace", String, "", 0},
	{Pod, PodUID, "uid", String, "", 0},
	{Pod, PodAttempt, "attempt", Int64, "", 0},
	{Pod, PodRuntimeHandler, "runtime_handler", String, "", 0},
	{Pod, PodQoS, "qos", String, "", 0},
	{Pod, PodCgroupParent, "cgroup_parent", String, "", inRun | inCreate},
	{Pod, PodLabels, "labels", Map, "", inRun},
	{Pod, PodAnnotations, "annotations", Map, "", inRun},
	{Pod, PodHostname, "hostname", String, "", 0},

	{Container, ContainerID, "id", String, "", 0},
	{Container, ContainerName, "name", String, "", 0},
	{Container, ContainerAttempt, "attempt", Int64, "", 0},
	{Container, ContainerImage, "image", String, "", 0},
	{Container, ContainerPodID, "pod_sandbox_id", String, "", 0},
	{Container, ContainerLabels, "labels", Map, "", 0},
	{Container, ContainerAnnotations, "annotations", Map, "", inUpdate},
	{Container, ContainerEnv, "env", Map, "", inCreate},

	{Node, NodeCgroupVersion, "cgroup_version", Int64, "", 0},
	{Node, NodeRuntimeName, "runtime_name", String, "", 0},
	{Node, NodeRuntimeVersion, "runtime_version", String, "", 0},

	{Pod, Overhead + CPUPeriod, "overhead.cpu_period", Int64, "µs", 0},
	{Pod, Overhead + CPUQuota, "overhead.cpu_quota", Int64, "µs", 0},
	{Pod, Overhead + CPUShares, "overhead.cpu_shares", Int64, "", 0},
	{Pod, Overhead + MemoryLimit, "overhead.memory_limit_in_bytes", Int64, "bytes", 0},
	{Pod, Overhead + OOMScoreAdj, "overhead.oom_score_adj", Int64, "", 0},
	{Pod, Overhead + CpusetCpus, "overhead.cpuset_cpus", String, "", 0},
	{Pod, Overhead + CpusetMems, "overhead.cpuset_mems", String, "", 0},
	{Pod, Overhead + HugepageLimits, "overhead.hugepage_limits", Map, "bytes", 0},
	{Pod, Overhead + Unified, "overhead.unified", Map, "", 0},
	{Pod, Overhead + MemorySwap, "overhead.memory_swap_limit_in_bytes", Int64, "bytes", 0},

	{Pod, Resources + CPUPeriod, "resources.cpu_period", Int64, "µs", 0},
	{Pod, Resources + CPUQuota, "resources.cpu_quota", Int64, "µs", 0},
	{Pod, Resources + CPUShares, "resources.cpu_shares", Int64, "", 0},
	{Pod, Resources + MemoryLimit, "resources.memory_limit_in_bytes", Int64, "bytes", 0},
	{Pod, Resources + OOMScoreAdj, "resources.oom_score_adj", Int64, "", 0},
	{Pod, Resources + CpusetCpus, "resources.cpuset_cpus", String, "", 0},
	{Pod, Resources + CpusetMems, "resources.cpuset_mems", String, "", 0},
	{Pod, Resources + HugepageLimits, "resources.hugepage_limits", Map, "bytes", 0},
	{Pod, Resources + Unified, "resources.unified", Map, "", 0},
	{Pod, Resources + MemorySwap, "resources.memory_swap_limit_in_bytes", Int64, "bytes", 0},

	{Container, Resources + CPUPeriod, "resources.cpu_period", Int64, "µs", inUpdate},
	{Container, Resources + CPUQuota, "resources.cpu_quota", Int64, "µs", inUpdate},
	{Container, Resources + CPUShares, "resources.cpu_shares", Int64, "", inUpdate},
	{Container, Resources + MemoryLimit, "resources.memory_limit_in_bytes", Int64, "bytes", inUpdate},
	{Container, Resources + OOMScoreAdj, "resources.oom_score_adj", Int64, "", inUpdate},
	{Container, Resources + CpusetCpus, "resources.cpuset_cpus", String, "", inUpdate},
	{Container, Resources + CpusetMems, "resources.cpuset_mems", String, "", inUpdate},
	{Container, Resources + HugepageLimits, "resources.hugepage_limits", Map, "bytes", inUpdate},
	{Container, Resources + Unified, "resources.unified", Map, "", inUpdate},
	{Container, Resources + MemorySwap, "resources.memory_swap_limit_in_bytes", Int64, "bytes", inUpdate},
}

// CgroupWritable returns the hooks in which cgroup_set takes this object. What a
// container's hook sets before the container runs is written once it has started.
func CgroupWritable(o Object) HookSet {
	switch o {
	case Pod:
		return HookSetOf(PreRunPodSandbox, PostRunPodSandbox)
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
