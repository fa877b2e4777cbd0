// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

//! The tables of the plugin ABI `wp1`. ABI.md says what each entry means.

/// The ABI that this SDK speaks, as `wp_abi` returns it: major << 16 | minor.
pub const VERSION: i32 = 65536;

/// A point in the life of a CRI call at which plugins are called, or one of no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum Hook {
    /// before; RunPodSandbox.
    PreRunPodSandbox = 1,
    /// after; RunPodSandbox.
    PostRunPodSandbox = 2,
    /// before; CreateContainer.
    PreCreateContainer = 3,
    /// after; CreateContainer.
    PostCreateContainer = 4,
    /// before; StartContainer.
    PreStartContainer = 5,
    /// after; StartContainer.
    PostStartContainer = 6,
    /// before; UpdateContainerResources.
    PreUpdateContainerResources = 7,
    /// after; UpdateContainerResources.
    PostUpdateContainerResources = 8,
    /// after; StopContainer.
    PostStopContainer = 9,
    /// after; RemoveContainer.
    PostRemoveContainer = 10,
    /// after; StopPodSandbox.
    PostStopPodSandbox = 11,
    /// before, cannot refuse; StopContainer.
    PreStopContainer = 12,
    /// before, cannot refuse; RemoveContainer.
    PreRemoveContainer = 13,
    /// before, cannot refuse; StopPodSandbox.
    PreStopPodSandbox = 14,
    /// before, cannot refuse; RemovePodSandbox.
    PreRemovePodSandbox = 15,
    /// after; RemovePodSandbox.
    PostRemovePodSandbox = 16,
    /// before; UpdatePodSandboxResources.
    PreUpdatePodSandboxResources = 17,
    /// after; UpdatePodSandboxResources.
    PostUpdatePodSandboxResources = 18,
    /// before; Exec.
    PreExec = 19,
    /// after; Exec.
    PostExec = 20,
    /// before; ExecSync.
    PreExecSync = 21,
    /// after; ExecSync.
    PostExecSync = 22,
    /// before; Attach.
    PreAttach = 23,
    /// after; Attach.
    PostAttach = 24,
    /// before; PortForward.
    PrePortForward = 25,
    /// after; PortForward.
    PostPortForward = 26,
    /// before; CheckpointContainer.
    PreCheckpointContainer = 27,
    /// after; CheckpointContainer.
    PostCheckpointContainer = 28,
    /// before; CheckpointPod.
    PreCheckpointPod = 29,
    /// after; CheckpointPod.
    PostCheckpointPod = 30,
    /// before; RestorePod.
    PreRestorePod = 31,
    /// after; RestorePod.
    PostRestorePod = 32,
    /// before; PullImage.
    PrePullImage = 33,
    /// after; PullImage.
    PostPullImage = 34,
    /// before; RemoveImage.
    PreRemoveImage = 35,
    /// after; RemoveImage.
    PostRemoveImage = 36,
    /// standalone.
    Synchronize = 37,
    /// standalone.
    Tick = 38,
}

/// When a hook's plugins are called, and what they may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The call is forwarded afterwards: it can be changed and refused.
    Before,
    /// Before as well, but the call cannot be refused.
    BeforeNoReject,
    /// The runtime has answered OK.
    After,
    /// Of no call.
    Standalone,
}

/// A row of the table of hooks.
pub struct HookInfo {
    /// The hook.
    pub hook: Hook,
    /// Its name.
    pub name: &'static str,
    /// When plugins are called.
    pub phase: Phase,
    /// What it is about: 1 a pod, 2 a container, 0 neither.
    pub object: i32,
}

/// The hooks, in the order of their numbers.
#[rustfmt::skip]
pub static HOOKS: [HookInfo; 38] = [
    HookInfo { hook: Hook::PreRunPodSandbox, name: "PreRunPodSandbox", phase: Phase::Before, object: 1 },
    HookInfo { hook: Hook::PostRunPodSandbox, name: "PostRunPodSandbox", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreCreateContainer, name: "PreCreateContainer", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostCreateContainer, name: "PostCreateContainer", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PreStartContainer, name: "PreStartContainer", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostStartContainer, name: "PostStartContainer", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PreUpdateContainerResources, name: "PreUpdateContainerResources", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostUpdateContainerResources, name: "PostUpdateContainerResources", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PostStopContainer, name: "PostStopContainer", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PostRemoveContainer, name: "PostRemoveContainer", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PostStopPodSandbox, name: "PostStopPodSandbox", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreStopContainer, name: "PreStopContainer", phase: Phase::BeforeNoReject, object: 2 },
    HookInfo { hook: Hook::PreRemoveContainer, name: "PreRemoveContainer", phase: Phase::BeforeNoReject, object: 2 },
    HookInfo { hook: Hook::PreStopPodSandbox, name: "PreStopPodSandbox", phase: Phase::BeforeNoReject, object: 1 },
    HookInfo { hook: Hook::PreRemovePodSandbox, name: "PreRemovePodSandbox", phase: Phase::BeforeNoReject, object: 1 },
    HookInfo { hook: Hook::PostRemovePodSandbox, name: "PostRemovePodSandbox", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreUpdatePodSandboxResources, name: "PreUpdatePodSandboxResources", phase: Phase::Before, object: 1 },
    HookInfo { hook: Hook::PostUpdatePodSandboxResources, name: "PostUpdatePodSandboxResources", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreExec, name: "PreExec", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostExec, name: "PostExec", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PreExecSync, name: "PreExecSync", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostExecSync, name: "PostExecSync", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PreAttach, name: "PreAttach", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostAttach, name: "PostAttach", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PrePortForward, name: "PrePortForward", phase: Phase::Before, object: 1 },
    HookInfo { hook: Hook::PostPortForward, name: "PostPortForward", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreCheckpointContainer, name: "PreCheckpointContainer", phase: Phase::Before, object: 2 },
    HookInfo { hook: Hook::PostCheckpointContainer, name: "PostCheckpointContainer", phase: Phase::After, object: 2 },
    HookInfo { hook: Hook::PreCheckpointPod, name: "PreCheckpointPod", phase: Phase::Before, object: 1 },
    HookInfo { hook: Hook::PostCheckpointPod, name: "PostCheckpointPod", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PreRestorePod, name: "PreRestorePod", phase: Phase::Before, object: 1 },
    HookInfo { hook: Hook::PostRestorePod, name: "PostRestorePod", phase: Phase::After, object: 1 },
    HookInfo { hook: Hook::PrePullImage, name: "PrePullImage", phase: Phase::Before, object: 0 },
    HookInfo { hook: Hook::PostPullImage, name: "PostPullImage", phase: Phase::After, object: 0 },
    HookInfo { hook: Hook::PreRemoveImage, name: "PreRemoveImage", phase: Phase::Before, object: 0 },
    HookInfo { hook: Hook::PostRemoveImage, name: "PostRemoveImage", phase: Phase::After, object: 0 },
    HookInfo { hook: Hook::Synchronize, name: "Synchronize", phase: Phase::Standalone, object: 1 },
    HookInfo { hook: Hook::Tick, name: "Tick", phase: Phase::Standalone, object: 0 },
];

/// A permission that a plugin declares and an operator grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `store.read`: look up other pods and containers.
    StoreRead,
    /// `resources`: change CRI resources.
    Resources,
    /// `unified`: change the unified map of CRI resources.
    Unified,
    /// `annotations`: change annotations.
    Annotations,
    /// `labels`: change labels of a pod.
    Labels,
    /// `cgroup.write`: write cgroup files.
    CgroupWrite,
    /// `metric`: count and measure.
    Metric,
    /// `env`: read and change the environment, which may hold secrets.
    Env,
    /// `cgroup.read`: read files of the cgroup of the pod, its QoS class or the container.
    CgroupRead,
    /// `cgroup.parent`: change the cgroup that a pod or container is put into.
    CgroupParent,
    /// `runtime_handler`: change the runtime handler of a pod.
    RuntimeHandler,
    /// `image`: change the image that is pulled or run.
    Image,
    /// `args`: change command, arguments and working directory.
    Args,
    /// `mounts`: add and remove mounts.
    Mounts,
    /// `devices`: add and remove devices.
    Devices,
    /// `cdi`: add and remove CDI devices.
    Cdi,
    /// `user`: change user and groups.
    User,
    /// `update.others`: change resources and cgroup files of pods and containers other than the event's.
    UpdateOthers,
    /// `state.kv`: keep values from one call to the next.
    StateKv,
    /// `cri.raw`: read the whole request; without env and credentials unless they are granted too.
    CriRaw,
    /// `credentials`: see the registry credentials of PullImage in cri_raw.
    Credentials,
    /// `pod.limits`: set CPU and memory limits of containers above the pod's, which is lifted then.
    PodLimits,
    /// `store.read.all`: with store.read, find and read pods and containers outside of the operator's match.
    StoreReadAll,
}

impl Capability {
    /// The name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::StoreRead => "store.read",
            Capability::Resources => "resources",
            Capability::Unified => "unified",
            Capability::Annotations => "annotations",
            Capability::Labels => "labels",
            Capability::CgroupWrite => "cgroup.write",
            Capability::Metric => "metric",
            Capability::Env => "env",
            Capability::CgroupRead => "cgroup.read",
            Capability::CgroupParent => "cgroup.parent",
            Capability::RuntimeHandler => "runtime_handler",
            Capability::Image => "image",
            Capability::Args => "args",
            Capability::Mounts => "mounts",
            Capability::Devices => "devices",
            Capability::Cdi => "cdi",
            Capability::User => "user",
            Capability::UpdateOthers => "update.others",
            Capability::StateKv => "state.kv",
            Capability::CriRaw => "cri.raw",
            Capability::Credentials => "credentials",
            Capability::PodLimits => "pod.limits",
            Capability::StoreReadAll => "store.read.all",
        }
    }
}

/// Something that nodes and hosts of one ABI version may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Feature {
    /// `cgroup_v2`: the node has cgroup v2.
    CgroupV2 = 1,
    /// `cgroup_files`: the host reads and writes cgroup files.
    CgroupFiles = 2,
    /// `update`: writes on handles are applied.
    Update = 3,
    /// `kv`: values survive a reload of the plugin.
    Kv = 4,
}

/// The host's reason for refusing something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Errno {
    /// no such object, field, key or file.
    NotFound = -1,
    /// this node, kernel or host cannot do it.
    Unsupported = -2,
    /// not declared by the plugin, not granted by the operator, or not for plugins to write.
    Denied = -3,
    /// malformed, out of range, or not of the field's type.
    Invalid = -4,
    /// the value exceeds a limit.
    TooLarge = -5,
    /// too many operations in this call.
    Limit = -6,
    /// not writable in this hook.
    ReadOnly = -7,
    /// an earlier plugin set it to another value.
    Conflict = -8,
}

impl Errno {
    /// The errors, by their number from -1 downwards.
    #[rustfmt::skip]
    pub const ALL: [Errno; 8] = [
        Errno::NotFound,
        Errno::Unsupported,
        Errno::Denied,
        Errno::Invalid,
        Errno::TooLarge,
        Errno::Limit,
        Errno::ReadOnly,
        Errno::Conflict,
    ];

    /// The error's name, such as "read-only here".
    pub const fn name(self) -> &'static str {
        match self {
            Errno::NotFound => "not found",
            Errno::Unsupported => "unsupported",
            Errno::Denied => "denied",
            Errno::Invalid => "invalid",
            Errno::TooLarge => "too large",
            Errno::Limit => "limit reached",
            Errno::ReadOnly => "read-only here",
            Errno::Conflict => "conflict",
        }
    }
}

/// The numbers of fields.
pub mod field {
    /// `event.hook`, i64.
    pub const EVENT_HOOK: i32 = 1;
    /// `event.time`, i64 in ns.
    pub const EVENT_TIME: i32 = 2;
    /// `event.method`, string.
    pub const EVENT_METHOD: i32 = 3;
    /// `event.image`, string.
    pub const EVENT_IMAGE: i32 = 4;
    /// `event.image_ref`, string.
    pub const EVENT_IMAGE_REF: i32 = 5;
    /// `event.command`, list.
    pub const EVENT_COMMAND: i32 = 6;
    /// `event.tty`, i64.
    pub const EVENT_TTY: i32 = 7;
    /// `event.stdin`, i64.
    pub const EVENT_STDIN: i32 = 8;
    /// `event.timeout`, i64 in s.
    pub const EVENT_TIMEOUT: i32 = 9;
    /// `event.exit_code`, i64.
    pub const EVENT_EXIT_CODE: i32 = 10;
    /// `event.ports`, list.
    pub const EVENT_PORTS: i32 = 11;
    /// `event.location`, string.
    pub const EVENT_LOCATION: i32 = 12;
    /// `pod.id`, string.
    pub const POD_ID: i32 = 1;
    /// `pod.name`, string.
    pub const POD_NAME: i32 = 2;
    /// `pod.namespace`, string.
    pub const POD_NAMESPACE: i32 = 3;
    /// `pod.uid`, string.
    pub const POD_UID: i32 = 4;
    /// `pod.attempt`, i64.
    pub const POD_ATTEMPT: i32 = 5;
    /// `pod.runtime_handler`, string.
    pub const POD_RUNTIME_HANDLER: i32 = 6;
    /// `pod.qos`, string.
    pub const POD_QOS: i32 = 7;
    /// `pod.cgroup_parent`, string.
    pub const POD_CGROUP_PARENT: i32 = 8;
    /// `pod.labels`, map.
    pub const POD_LABELS: i32 = 9;
    /// `pod.annotations`, map.
    pub const POD_ANNOTATIONS: i32 = 10;
    /// `pod.hostname`, string.
    pub const POD_HOSTNAME: i32 = 11;
    /// `pod.state`, string.
    pub const POD_STATE: i32 = 12;
    /// `pod.sysctls`, map.
    pub const POD_SYSCTLS: i32 = 13;
    /// `pod.log_directory`, string.
    pub const POD_LOG_DIRECTORY: i32 = 14;
    /// `pod.network_namespace`, string.
    pub const POD_NETWORK_NAMESPACE: i32 = 15;
    /// `pod.pid_namespace`, string.
    pub const POD_PID_NAMESPACE: i32 = 16;
    /// `pod.ipc_namespace`, string.
    pub const POD_IPC_NAMESPACE: i32 = 17;
    /// `pod.user_namespace`, string.
    pub const POD_USER_NAMESPACE: i32 = 18;
    /// `pod.privileged`, i64.
    pub const POD_PRIVILEGED: i32 = 19;
    /// `pod.port_mappings`, list.
    pub const POD_PORT_MAPPINGS: i32 = 20;
    /// `container.id`, string.
    pub const CONTAINER_ID: i32 = 1;
    /// `container.name`, string.
    pub const CONTAINER_NAME: i32 = 2;
    /// `container.attempt`, i64.
    pub const CONTAINER_ATTEMPT: i32 = 3;
    /// `container.image`, string.
    pub const CONTAINER_IMAGE: i32 = 4;
    /// `container.pod_sandbox_id`, string.
    pub const CONTAINER_POD_SANDBOX_ID: i32 = 5;
    /// `container.labels`, map.
    pub const CONTAINER_LABELS: i32 = 9;
    /// `container.annotations`, map.
    pub const CONTAINER_ANNOTATIONS: i32 = 10;
    /// `container.env`, map.
    pub const CONTAINER_ENV: i32 = 11;
    /// `container.state`, string.
    pub const CONTAINER_STATE: i32 = 12;
    /// `container.command`, list.
    pub const CONTAINER_COMMAND: i32 = 13;
    /// `container.args`, list.
    pub const CONTAINER_ARGS: i32 = 14;
    /// `container.working_dir`, string.
    pub const CONTAINER_WORKING_DIR: i32 = 15;
    /// `container.mounts`, set.
    pub const CONTAINER_MOUNTS: i32 = 16;
    /// `container.devices`, set.
    pub const CONTAINER_DEVICES: i32 = 17;
    /// `container.cdi_devices`, set.
    pub const CONTAINER_CDI_DEVICES: i32 = 18;
    /// `container.run_as_user`, i64.
    pub const CONTAINER_RUN_AS_USER: i32 = 19;
    /// `container.run_as_group`, i64.
    pub const CONTAINER_RUN_AS_GROUP: i32 = 20;
    /// `container.run_as_username`, string.
    pub const CONTAINER_RUN_AS_USERNAME: i32 = 21;
    /// `container.supplemental_groups`, set.
    pub const CONTAINER_SUPPLEMENTAL_GROUPS: i32 = 22;
    /// `container.privileged`, i64.
    pub const CONTAINER_PRIVILEGED: i32 = 23;
    /// `container.readonly_rootfs`, i64.
    pub const CONTAINER_READONLY_ROOTFS: i32 = 24;
    /// `container.log_path`, string.
    pub const CONTAINER_LOG_PATH: i32 = 25;
    /// `container.image_id`, string.
    pub const CONTAINER_IMAGE_ID: i32 = 26;
    /// `container.image_repo_digests`, list.
    pub const CONTAINER_IMAGE_REPO_DIGESTS: i32 = 27;
    /// `container.add_capabilities`, list.
    pub const CONTAINER_ADD_CAPABILITIES: i32 = 32;
    /// `container.drop_capabilities`, list.
    pub const CONTAINER_DROP_CAPABILITIES: i32 = 33;
    /// `container.add_ambient_capabilities`, list.
    pub const CONTAINER_ADD_AMBIENT_CAPABILITIES: i32 = 34;
    /// `container.no_new_privs`, i64.
    pub const CONTAINER_NO_NEW_PRIVS: i32 = 35;
    /// `container.seccomp`, string.
    pub const CONTAINER_SECCOMP: i32 = 36;
    /// `container.apparmor`, string.
    pub const CONTAINER_APPARMOR: i32 = 37;
    /// `container.image_volumes`, map.
    pub const CONTAINER_IMAGE_VOLUMES: i32 = 38;
    /// `node.cgroup_version`, i64.
    pub const NODE_CGROUP_VERSION: i32 = 1;
    /// `node.runtime_name`, string.
    pub const NODE_RUNTIME_NAME: i32 = 2;
    /// `node.runtime_version`, string.
    pub const NODE_RUNTIME_VERSION: i32 = 3;
    /// `node.cgroup_driver`, string.
    pub const NODE_CGROUP_DRIVER: i32 = 4;
    /// `node.cpus`, i64.
    pub const NODE_CPUS: i32 = 5;
    /// `node.memory`, i64 in bytes.
    pub const NODE_MEMORY: i32 = 6;
    /// `node.kernel`, string.
    pub const NODE_KERNEL: i32 = 7;
    /// `node.runtime_handlers`, list.
    pub const NODE_RUNTIME_HANDLERS: i32 = 8;
    /// The first of a pod's overhead.
    pub const OVERHEAD: i32 = 32;
    /// The first of the resources of a pod or container.
    pub const RESOURCES: i32 = 64;
    /// `cpu_period`, i64 in µs; relative to `OVERHEAD` or `RESOURCES`.
    pub const CPU_PERIOD: i32 = 0;
    /// `cpu_quota`, i64 in µs; relative to `OVERHEAD` or `RESOURCES`.
    pub const CPU_QUOTA: i32 = 1;
    /// `cpu_shares`, i64; relative to `OVERHEAD` or `RESOURCES`.
    pub const CPU_SHARES: i32 = 2;
    /// `memory_limit_in_bytes`, i64 in bytes; relative to `OVERHEAD` or `RESOURCES`.
    pub const MEMORY_LIMIT_IN_BYTES: i32 = 3;
    /// `oom_score_adj`, i64; relative to `OVERHEAD` or `RESOURCES`.
    pub const OOM_SCORE_ADJ: i32 = 4;
    /// `cpuset_cpus`, string; relative to `OVERHEAD` or `RESOURCES`.
    pub const CPUSET_CPUS: i32 = 5;
    /// `cpuset_mems`, string; relative to `OVERHEAD` or `RESOURCES`.
    pub const CPUSET_MEMS: i32 = 6;
    /// `hugepage_limits`, map in bytes; relative to `OVERHEAD` or `RESOURCES`.
    pub const HUGEPAGE_LIMITS: i32 = 7;
    /// `unified`, map; relative to `OVERHEAD` or `RESOURCES`.
    pub const UNIFIED: i32 = 8;
    /// `memory_swap_limit_in_bytes`, i64 in bytes; relative to `OVERHEAD` or `RESOURCES`.
    pub const MEMORY_SWAP_LIMIT_IN_BYTES: i32 = 9;
}

/// Says which getters and setters a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Int64,
    /// A text.
    String,
    /// Texts by their keys.
    Map,
    /// Texts in an order.
    List,
    /// Elements with a key each.
    Set,
}

/// A row of the table of fields.
pub struct FieldInfo {
    /// The object's number.
    pub object: i32,
    /// The field's number.
    pub field: i32,
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The hooks in which it can be set, one bit each.
    pub writable: u64,
    /// What setting it needs.
    pub writing: Option<Capability>,
    /// What reading it needs.
    pub reading: Option<Capability>,
    /// Whether it can be set on a handle.
    pub handle: bool,
}

/// The table of fields.
#[rustfmt::skip]
pub static FIELDS: [FieldInfo; 101] = [
    FieldInfo { object: 0, field: 1, name: "hook", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 2, name: "time", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 3, name: "method", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 4, name: "image", kind: Type::String, writable: 0x200000000, writing: Some(Capability::Image), reading: None, handle: false },
    FieldInfo { object: 0, field: 5, name: "image_ref", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 6, name: "command", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 7, name: "tty", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 8, name: "stdin", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 9, name: "timeout", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 10, name: "exit_code", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 11, name: "ports", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 0, field: 12, name: "location", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 1, name: "id", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 2, name: "name", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 3, name: "namespace", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 4, name: "uid", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 5, name: "attempt", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 6, name: "runtime_handler", kind: Type::String, writable: 0x2, writing: Some(Capability::RuntimeHandler), reading: None, handle: false },
    FieldInfo { object: 1, field: 7, name: "qos", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 8, name: "cgroup_parent", kind: Type::String, writable: 0xa, writing: Some(Capability::CgroupParent), reading: None, handle: false },
    FieldInfo { object: 1, field: 9, name: "labels", kind: Type::Map, writable: 0x2, writing: Some(Capability::Labels), reading: None, handle: false },
    FieldInfo { object: 1, field: 10, name: "annotations", kind: Type::Map, writable: 0x2, writing: Some(Capability::Annotations), reading: None, handle: false },
    FieldInfo { object: 1, field: 11, name: "hostname", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 12, name: "state", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 13, name: "sysctls", kind: Type::Map, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 14, name: "log_directory", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 15, name: "network_namespace", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 16, name: "pid_namespace", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 17, name: "ipc_namespace", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 18, name: "user_namespace", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 19, name: "privileged", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 20, name: "port_mappings", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 1, name: "id", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 2, name: "name", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 3, name: "attempt", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 4, name: "image", kind: Type::String, writable: 0x8, writing: Some(Capability::Image), reading: None, handle: false },
    FieldInfo { object: 2, field: 5, name: "pod_sandbox_id", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 9, name: "labels", kind: Type::Map, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 10, name: "annotations", kind: Type::Map, writable: 0x88, writing: Some(Capability::Annotations), reading: None, handle: false },
    FieldInfo { object: 2, field: 11, name: "env", kind: Type::Map, writable: 0x8, writing: Some(Capability::Env), reading: Some(Capability::Env), handle: false },
    FieldInfo { object: 2, field: 12, name: "state", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 13, name: "command", kind: Type::List, writable: 0x8, writing: Some(Capability::Args), reading: None, handle: false },
    FieldInfo { object: 2, field: 14, name: "args", kind: Type::List, writable: 0x8, writing: Some(Capability::Args), reading: None, handle: false },
    FieldInfo { object: 2, field: 15, name: "working_dir", kind: Type::String, writable: 0x8, writing: Some(Capability::Args), reading: None, handle: false },
    FieldInfo { object: 2, field: 16, name: "mounts", kind: Type::Set, writable: 0x8, writing: Some(Capability::Mounts), reading: None, handle: false },
    FieldInfo { object: 2, field: 17, name: "devices", kind: Type::Set, writable: 0x8, writing: Some(Capability::Devices), reading: None, handle: false },
    FieldInfo { object: 2, field: 18, name: "cdi_devices", kind: Type::Set, writable: 0x8, writing: Some(Capability::Cdi), reading: None, handle: false },
    FieldInfo { object: 2, field: 19, name: "run_as_user", kind: Type::Int64, writable: 0x8, writing: Some(Capability::User), reading: None, handle: false },
    FieldInfo { object: 2, field: 20, name: "run_as_group", kind: Type::Int64, writable: 0x8, writing: Some(Capability::User), reading: None, handle: false },
    FieldInfo { object: 2, field: 21, name: "run_as_username", kind: Type::String, writable: 0x8, writing: Some(Capability::User), reading: None, handle: false },
    FieldInfo { object: 2, field: 22, name: "supplemental_groups", kind: Type::Set, writable: 0x8, writing: Some(Capability::User), reading: None, handle: false },
    FieldInfo { object: 2, field: 23, name: "privileged", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 24, name: "readonly_rootfs", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 25, name: "log_path", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 26, name: "image_id", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 27, name: "image_repo_digests", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 32, name: "add_capabilities", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 33, name: "drop_capabilities", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 34, name: "add_ambient_capabilities", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 35, name: "no_new_privs", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 36, name: "seccomp", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 37, name: "apparmor", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 2, field: 38, name: "image_volumes", kind: Type::Map, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 1, name: "cgroup_version", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 2, name: "runtime_name", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 3, name: "runtime_version", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 4, name: "cgroup_driver", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 5, name: "cpus", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 6, name: "memory", kind: Type::Int64, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 7, name: "kernel", kind: Type::String, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 3, field: 8, name: "runtime_handlers", kind: Type::List, writable: 0x0, writing: None, reading: None, handle: false },
    FieldInfo { object: 1, field: 32, name: "overhead.cpu_period", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 33, name: "overhead.cpu_quota", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 34, name: "overhead.cpu_shares", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 35, name: "overhead.memory_limit_in_bytes", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 36, name: "overhead.oom_score_adj", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 37, name: "overhead.cpuset_cpus", kind: Type::String, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 38, name: "overhead.cpuset_mems", kind: Type::String, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 39, name: "overhead.hugepage_limits", kind: Type::Map, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 40, name: "overhead.unified", kind: Type::Map, writable: 0x20000, writing: Some(Capability::Unified), reading: None, handle: false },
    FieldInfo { object: 1, field: 41, name: "overhead.memory_swap_limit_in_bytes", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 64, name: "resources.cpu_period", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 65, name: "resources.cpu_quota", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 66, name: "resources.cpu_shares", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 67, name: "resources.memory_limit_in_bytes", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 68, name: "resources.oom_score_adj", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 69, name: "resources.cpuset_cpus", kind: Type::String, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 70, name: "resources.cpuset_mems", kind: Type::String, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 71, name: "resources.hugepage_limits", kind: Type::Map, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 1, field: 72, name: "resources.unified", kind: Type::Map, writable: 0x20000, writing: Some(Capability::Unified), reading: None, handle: false },
    FieldInfo { object: 1, field: 73, name: "resources.memory_swap_limit_in_bytes", kind: Type::Int64, writable: 0x20000, writing: Some(Capability::Resources), reading: None, handle: false },
    FieldInfo { object: 2, field: 64, name: "resources.cpu_period", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 65, name: "resources.cpu_quota", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 66, name: "resources.cpu_shares", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 67, name: "resources.memory_limit_in_bytes", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 68, name: "resources.oom_score_adj", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 69, name: "resources.cpuset_cpus", kind: Type::String, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 70, name: "resources.cpuset_mems", kind: Type::String, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 71, name: "resources.hugepage_limits", kind: Type::Map, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
    FieldInfo { object: 2, field: 72, name: "resources.unified", kind: Type::Map, writable: 0x88, writing: Some(Capability::Unified), reading: None, handle: true },
    FieldInfo { object: 2, field: 73, name: "resources.memory_swap_limit_in_bytes", kind: Type::Int64, writable: 0x88, writing: Some(Capability::Resources), reading: None, handle: true },
];

/// A row of the table of sets whose elements are records.
pub struct RecordInfo {
    /// The object's number.
    pub object: i32,
    /// The field's number.
    pub field: i32,
    /// The keys of an element; the first is the one it goes by.
    pub keys: &'static [&'static str],
}

/// The table of sets whose elements are records.
#[rustfmt::skip]
pub static RECORDS: [RecordInfo; 2] = [
    RecordInfo { object: 2, field: 16, keys: &["container_path", "host_path", "readonly", "propagation", "selinux_relabel", "recursive_read_only"] },
    RecordInfo { object: 2, field: 17, keys: &["container_path", "host_path", "permissions"] },
];

/// The hooks in which `cgroup_set` takes a pod, one bit each.
pub const CGROUP_POD: u64 = 0x2000000006;

/// The hooks in which `cgroup_set` takes a container, one bit each.
pub const CGROUP_CONTAINER: u64 = 0x1f8;

/// A cgroup file that plugins may write. Ways are 1 for `cgroup_set`, 2 for `unified` and 3 for both.
pub struct CgroupFile {
    /// The cgroup v2 name, in which `<size>` is a size of huge pages.
    pub name: &'static str,
    /// The ways of a pod's.
    pub pod: u8,
    /// The ways of a container's.
    pub container: u8,
}

/// The table of cgroup files that plugins may write.
#[rustfmt::skip]
pub static CGROUP_FILES: [CgroupFile; 28] = [
    // 1 to 10000
    CgroupFile { name: "cpu.weight", pod: 3, container: 3 },
    // -20 to 19
    CgroupFile { name: "cpu.weight.nice", pod: 3, container: 3 },
    // QUOTA or QUOTA PERIOD in µs; QUOTA is 1000 to 17592186044415, or max; PERIOD is 1000 to 1000000
    CgroupFile { name: "cpu.max", pod: 2, container: 3 },
    // µs, 0 to 17592186044415, at most the quota
    CgroupFile { name: "cpu.max.burst", pod: 3, container: 3 },
    // 0 or 1
    CgroupFile { name: "cpu.idle", pod: 3, container: 3 },
    // percent, 0 to 100 with up to two decimals, or max
    CgroupFile { name: "cpu.uclamp.min", pod: 3, container: 3 },
    // percent, 0 to 100 with up to two decimals, or max
    CgroupFile { name: "cpu.uclamp.max", pod: 3, container: 3 },
    // -1 to 2
    CgroupFile { name: "cpu.bvt_warp_ns", pod: 3, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.min", pod: 3, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.low", pod: 3, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.high", pod: 3, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.max", pod: 2, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.swap.high", pod: 3, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.swap.max", pod: 2, container: 3 },
    // bytes, or max
    CgroupFile { name: "memory.zswap.max", pod: 3, container: 3 },
    // 0 or 1
    CgroupFile { name: "memory.oom.group", pod: 3, container: 3 },
    // default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 10000
    CgroupFile { name: "io.weight", pod: 3, container: 3 },
    // default WEIGHT, MAJOR:MINOR WEIGHT or MAJOR:MINOR default; WEIGHT is 1 to 1000
    CgroupFile { name: "io.bfq.weight", pod: 3, container: 3 },
    // MAJOR:MINOR and any of rbps=, wbps= (bytes a second), riops=, wiops= (operations a second); each 1 or more, or max
    CgroupFile { name: "io.max", pod: 3, container: 3 },
    // MAJOR:MINOR target=MICROSECONDS, or target=max
    CgroupFile { name: "io.latency", pod: 3, container: 3 },
    // no-change, promote-to-rt, restrict-to-be, idle or none-to-rt
    CgroupFile { name: "io.prio.class", pod: 3, container: 3 },
    // 0 to 4194304, or max
    CgroupFile { name: "pids.max", pod: 3, container: 3 },
    // numbers and ranges such as 0-3,7
    CgroupFile { name: "cpuset.cpus", pod: 2, container: 3 },
    // numbers and ranges such as 0-1
    CgroupFile { name: "cpuset.mems", pod: 2, container: 3 },
    // bytes, or max
    CgroupFile { name: "hugetlb.<size>.max", pod: 2, container: 3 },
    // bytes, or max
    CgroupFile { name: "hugetlb.<size>.rsvd.max", pod: 2, container: 3 },
    // DEVICE and any of hca_handle=, hca_object=; each 0 to 2147483647, or max
    CgroupFile { name: "rdma.max", pod: 3, container: 3 },
    // RESOURCE NUMBER or RESOURCE max
    CgroupFile { name: "misc.max", pod: 3, container: 3 },
];

/// The numbers of objects.
pub mod object {
    /// `0`: the event.
    pub const EVENT: i32 = 0;
    /// `1`: the event's pod.
    pub const POD: i32 = 1;
    /// `2`: the event's container.
    pub const CONTAINER: i32 = 2;
    /// `3`: the node.
    pub const NODE: i32 = 3;
    /// `16`: the first handle.
    pub const FIRST_HANDLE: i32 = 16;
    /// `65536`: plus a pod: the pod's QoS class, whose cgroup can only be read.
    pub const QOS_CLASS: i32 = 65536;
}

/// Kinds of `pod_find`.
pub mod kind {
    /// `0`: the id of a pod sandbox; gives that pod.
    pub const BY_POD_ID: i32 = 0;
    /// `1`: the uid of a Kubernetes pod; gives its newest sandbox.
    pub const BY_POD_UID: i32 = 1;
    /// `2`: `namespace/name` of a Kubernetes pod; gives its newest sandbox.
    pub const BY_POD_NAME: i32 = 2;
    /// `3`: the id of a container; gives that container.
    pub const BY_CONTAINER_ID: i32 = 3;
}

/// What `wp_hook` returns if it does not fail.
pub mod result {
    /// `0`: the call goes on.
    pub const CONTINUE: i32 = 0;
    /// `1`: the call is refused; reject was called.
    pub const REJECT: i32 = 1;
}

/// Codes of `reject`.
pub mod code {
    /// `3`: InvalidArgument.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// `7`: PermissionDenied.
    pub const PERMISSION_DENIED: i32 = 7;
    /// `8`: ResourceExhausted.
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    /// `9`: FailedPrecondition, as 0 is.
    pub const FAILED_PRECONDITION: i32 = 9;
}

/// Levels of `log`.
pub mod level {
    /// `0`: debug.
    pub const DEBUG: i32 = 0;
    /// `1`: info.
    pub const INFO: i32 = 1;
    /// `2`: warn.
    pub const WARN: i32 = 2;
    /// `3`: error.
    pub const ERROR: i32 = 3;
}

/// Kinds of `metric`.
pub mod metric {
    /// `0`: a counter grows by the value, which is not negative.
    pub const ADD: i32 = 0;
    /// `1`: a gauge is the value.
    pub const SET: i32 = 1;
    /// `2`: a histogram takes the value.
    pub const OBSERVE: i32 = 2;
}

/// The host functions. ABI.md says what each does.
#[cfg(target_arch = "wasm32")]
#[rustfmt::skip]
pub mod host {
    #[link(wasm_import_module = "wp1")]
    unsafe extern "C" {
        /// See `get` in ABI.md.
        pub fn get(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32;
        /// See `get_i64` in ABI.md.
        pub fn get_i64(object: i32, field: i32, out: *mut u8) -> i32;
        /// See `map_get` in ABI.md.
        pub fn map_get(object: i32, field: i32, key: *const u8, key_len: u32, buf: *mut u8, cap: u32) -> i32;
        /// See `map_dump` in ABI.md.
        pub fn map_dump(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32;
        /// See `list_dump` in ABI.md.
        pub fn list_dump(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32;
        /// See `cri_raw` in ABI.md.
        pub fn cri_raw(buf: *mut u8, cap: u32) -> i32;
        /// See `cgroup_get` in ABI.md.
        pub fn cgroup_get(object: i32, file: *const u8, file_len: u32, buf: *mut u8, cap: u32) -> i32;
        /// See `pod_find` in ABI.md.
        pub fn pod_find(kind: i32, name: *const u8, name_len: u32) -> i32;
        /// See `pod_list` in ABI.md.
        pub fn pod_list(namespace: *const u8, namespace_len: u32, buf: *mut u8, cap: u32) -> i32;
        /// See `container_list` in ABI.md.
        pub fn container_list(pod: i32, buf: *mut u8, cap: u32) -> i32;
        /// See `set_i64` in ABI.md.
        pub fn set_i64(object: i32, field: i32, value: i64) -> i32;
        /// See `set_bytes` in ABI.md.
        pub fn set_bytes(object: i32, field: i32, value: *const u8, value_len: u32) -> i32;
        /// See `map_set` in ABI.md.
        pub fn map_set(object: i32, field: i32, key: *const u8, key_len: u32, value: *const u8, value_len: u32) -> i32;
        /// See `map_del` in ABI.md.
        pub fn map_del(object: i32, field: i32, key: *const u8, key_len: u32) -> i32;
        /// See `list_set` in ABI.md.
        pub fn list_set(object: i32, field: i32, list: *const u8, list_len: u32) -> i32;
        /// See `list_add` in ABI.md.
        pub fn list_add(object: i32, field: i32, element: *const u8, element_len: u32) -> i32;
        /// See `list_del` in ABI.md.
        pub fn list_del(object: i32, field: i32, key: *const u8, key_len: u32) -> i32;
        /// See `cgroup_set` in ABI.md.
        pub fn cgroup_set(object: i32, file: *const u8, file_len: u32, value: *const u8, value_len: u32) -> i32;
        /// See `reject` in ABI.md.
        pub fn reject(code: i32, reason: *const u8, reason_len: u32) -> i32;
        /// See `fail` in ABI.md.
        pub fn fail(reason: *const u8, reason_len: u32);
        /// See `abort` in ABI.md.
        pub fn abort(reason: *const u8, reason_len: u32);
        /// See `config` in ABI.md.
        pub fn config(buf: *mut u8, cap: u32) -> i32;
        /// See `log` in ABI.md.
        pub fn log(level: i32, text: *const u8, text_len: u32);
        /// See `log_level` in ABI.md.
        pub fn log_level() -> i32;
        /// See `metric` in ABI.md.
        pub fn metric(kind: i32, name: *const u8, name_len: u32, value: i64) -> i32;
        /// See `kv_get` in ABI.md.
        pub fn kv_get(key: *const u8, key_len: u32, buf: *mut u8, cap: u32) -> i32;
        /// See `kv_set` in ABI.md.
        pub fn kv_set(key: *const u8, key_len: u32, value: *const u8, value_len: u32) -> i32;
        /// See `kv_del` in ABI.md.
        pub fn kv_del(key: *const u8, key_len: u32) -> i32;
        /// See `now` in ABI.md.
        pub fn now() -> i64;
        /// See `random` in ABI.md.
        pub fn random(buf: *mut u8, len: u32) -> i32;
        /// See `feature` in ABI.md.
        pub fn feature(feature: i32) -> i32;
        /// See `cgroup_read` in ABI.md.
        pub fn cgroup_read(objects: *const u8, objects_len: u32, files: *const u8, files_len: u32, buf: *mut u8, cap: u32) -> i32;
        /// See `withdraw` in ABI.md.
        pub fn withdraw(object: i32, field: i32, key: *const u8, key_len: u32) -> i32;
        /// See `conflict` in ABI.md.
        pub fn conflict(buf: *mut u8, cap: u32) -> i32;
    }
}
