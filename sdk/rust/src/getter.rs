// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

use crate::abi::{field, object};
use crate::{Container, Node, Pod, Resources, ResourcesMut, Result, read};

impl Pod {
    /// The id of the pod's sandbox, "" before it is created.
    pub fn id(&self) -> String {
        read::text("id", self.0, field::POD_ID)
    }

    /// The pod's name.
    pub fn name(&self) -> String {
        read::text("name", self.0, field::POD_NAME)
    }

    /// The pod's Kubernetes namespace.
    pub fn namespace(&self) -> String {
        read::text("namespace", self.0, field::POD_NAMESPACE)
    }

    /// The pod's Kubernetes uid.
    pub fn uid(&self) -> String {
        read::text("uid", self.0, field::POD_UID)
    }

    /// How often the pod's sandbox was made before.
    pub fn attempt(&self) -> i64 {
        read::number("attempt", self.0, field::POD_ATTEMPT)
    }

    /// The handler of the pod's RuntimeClass, "" for the default.
    pub fn runtime_handler(&self) -> String {
        read::text("runtime_handler", self.0, field::POD_RUNTIME_HANDLER)
    }

    /// The pod's Kubernetes QoS class: Guaranteed, Burstable or BestEffort.
    pub fn qos(&self) -> String {
        read::text("qos", self.0, field::POD_QOS)
    }

    /// The pod's cgroup as CRI names it: a path, or a systemd slice.
    pub fn cgroup_parent(&self) -> String {
        read::text("cgroup_parent", self.0, field::POD_CGROUP_PARENT)
    }

    /// The pod's host name.
    pub fn hostname(&self) -> String {
        read::text("hostname", self.0, field::POD_HOSTNAME)
    }

    /// "ready" or "notready", "" before the pod is created.
    pub fn state(&self) -> String {
        read::text("state", self.0, field::POD_STATE)
    }

    /// The host's directory of the containers' logs.
    pub fn log_directory(&self) -> String {
        read::text("log_directory", self.0, field::POD_LOG_DIRECTORY)
    }

    /// Whose network the pod has: pod, container, node or target, as CRI's NamespaceMode.
    pub fn network_namespace(&self) -> String {
        read::text("network_namespace", self.0, field::POD_NETWORK_NAMESPACE)
    }

    /// Whose processes the containers see: pod, container, node or target.
    pub fn pid_namespace(&self) -> String {
        read::text("pid_namespace", self.0, field::POD_PID_NAMESPACE)
    }

    /// Whose IPC the containers have: pod, container, node or target.
    pub fn ipc_namespace(&self) -> String {
        read::text("ipc_namespace", self.0, field::POD_IPC_NAMESPACE)
    }

    /// Whose users the pod has: pod, container, node or target.
    pub fn user_namespace(&self) -> String {
        read::text("user_namespace", self.0, field::POD_USER_NAMESPACE)
    }

    /// Whether the pod may hold privileged containers.
    pub fn privileged(&self) -> bool {
        read::number("privileged", self.0, field::POD_PRIVILEGED) == 1
    }

    /// The pod's ports, each as HOST_IP:HOST_PORT:CONTAINER_PORT/PROTOCOL.
    pub fn port_mappings(&self) -> Vec<String> {
        read::texts("port_mappings", self.0, field::POD_PORT_MAPPINGS)
    }
}

impl Container {
    /// The container's id, "" before it is created.
    pub fn id(&self) -> String {
        read::text("id", self.0, field::CONTAINER_ID)
    }

    /// The container's name in its pod.
    pub fn name(&self) -> String {
        read::text("name", self.0, field::CONTAINER_NAME)
    }

    /// How often the container was created before.
    pub fn attempt(&self) -> i64 {
        read::number("attempt", self.0, field::CONTAINER_ATTEMPT)
    }

    /// The image as its user wrote it, "" if nobody told its name.
    pub fn image(&self) -> String {
        read::text("image", self.0, field::CONTAINER_IMAGE)
    }

    /// "created", "running", "exited" or "unknown", "" before the container is created.
    pub fn state(&self) -> String {
        read::text("state", self.0, field::CONTAINER_STATE)
    }

    /// The entrypoint, nothing for the image's.
    pub fn command(&self) -> Vec<String> {
        read::texts("command", self.0, field::CONTAINER_COMMAND)
    }

    /// The arguments, nothing for the image's.
    pub fn args(&self) -> Vec<String> {
        read::texts("args", self.0, field::CONTAINER_ARGS)
    }

    /// The directory that the container starts in, "" for the image's.
    pub fn working_dir(&self) -> String {
        read::text("working_dir", self.0, field::CONTAINER_WORKING_DIR)
    }

    /// The user's name, if the request gives it.
    pub fn run_as_username(&self) -> String {
        read::text("run_as_username", self.0, field::CONTAINER_RUN_AS_USERNAME)
    }

    /// Whether the container is privileged.
    pub fn privileged(&self) -> bool {
        read::number("privileged", self.0, field::CONTAINER_PRIVILEGED) == 1
    }

    /// Whether the container cannot write to its root.
    pub fn readonly_rootfs(&self) -> bool {
        read::number("readonly_rootfs", self.0, field::CONTAINER_READONLY_ROOTFS) == 1
    }

    /// The container's log, relative to the pod's directory.
    pub fn log_path(&self) -> String {
        read::text("log_path", self.0, field::CONTAINER_LOG_PATH)
    }

    /// The image's id as the request has it, "" if it has the name alone.
    pub fn image_id(&self) -> String {
        read::text("image_id", self.0, field::CONTAINER_IMAGE_ID)
    }

    /// The image in the registries that it was pulled from: registry/repository@digest.
    pub fn image_repo_digests(&self) -> Vec<String> {
        read::texts("image_repo_digests", self.0, field::CONTAINER_IMAGE_REPO_DIGESTS)
    }

    /// The Linux capabilities that the container gets beside the usual ones, such as NET_ADMIN; ALL is all.
    pub fn add_capabilities(&self) -> Vec<String> {
        read::texts("add_capabilities", self.0, field::CONTAINER_ADD_CAPABILITIES)
    }

    /// The usual Linux capabilities that the container does not get, such as NET_RAW; ALL is all.
    pub fn drop_capabilities(&self) -> Vec<String> {
        read::texts("drop_capabilities", self.0, field::CONTAINER_DROP_CAPABILITIES)
    }

    /// The ambient Linux capabilities that the container gets.
    pub fn add_ambient_capabilities(&self) -> Vec<String> {
        read::texts("add_ambient_capabilities", self.0, field::CONTAINER_ADD_AMBIENT_CAPABILITIES)
    }

    /// Whether no program of the container can gain privileges, such as by setuid.
    pub fn no_new_privs(&self) -> bool {
        read::number("no_new_privs", self.0, field::CONTAINER_NO_NEW_PRIVS) == 1
    }

    /// The seccomp profile: runtime/default, unconfined or localhost/FILE, "" if nobody says.
    pub fn seccomp(&self) -> String {
        read::text("seccomp", self.0, field::CONTAINER_SECCOMP)
    }

    /// The AppArmor profile: runtime/default, unconfined or localhost/NAME, "" if nobody says.
    pub fn apparmor(&self) -> String {
        read::text("apparmor", self.0, field::CONTAINER_APPARMOR)
    }
}

impl Node {
    /// The version of the node's cgroup hierarchy, 1 or 2.
    pub fn cgroup_version(&self) -> i64 {
        read::number("cgroup_version", object::NODE, field::NODE_CGROUP_VERSION)
    }

    /// The name of the container runtime behind the proxy, such as "containerd".
    pub fn runtime_name(&self) -> String {
        read::text("runtime_name", object::NODE, field::NODE_RUNTIME_NAME)
    }

    /// The version of the container runtime behind the proxy.
    pub fn runtime_version(&self) -> String {
        read::text("runtime_version", object::NODE, field::NODE_RUNTIME_VERSION)
    }

    /// "systemd" or "cgroupfs", "" where the runtime does not say.
    pub fn cgroup_driver(&self) -> String {
        read::text("cgroup_driver", object::NODE, field::NODE_CGROUP_DRIVER)
    }

    /// How many CPUs of the node are online.
    pub fn cpus(&self) -> i64 {
        read::number("cpus", object::NODE, field::NODE_CPUS)
    }

    /// The node's memory in bytes.
    pub fn memory(&self) -> i64 {
        read::number("memory", object::NODE, field::NODE_MEMORY)
    }

    /// The release of the node's kernel, as uname -r has it.
    pub fn kernel(&self) -> String {
        read::text("kernel", object::NODE, field::NODE_KERNEL)
    }

    /// The handlers that the container runtime has.
    pub fn runtime_handlers(&self) -> Vec<String> {
        read::texts("runtime_handlers", object::NODE, field::NODE_RUNTIME_HANDLERS)
    }
}

impl Resources {
    /// The CFS period in microseconds, 1000–1000000.
    pub fn cpu_period(&self) -> i64 {
        self.number("cpu_period", field::CPU_PERIOD)
    }

    /// The CFS quota in microseconds per period, -1 for no limit.
    pub fn cpu_quota(&self) -> i64 {
        self.number("cpu_quota", field::CPU_QUOTA)
    }

    /// The relative weight, 2–262144, whatever the cgroup version.
    pub fn cpu_shares(&self) -> i64 {
        self.number("cpu_shares", field::CPU_SHARES)
    }

    /// The memory limit in bytes.
    pub fn memory_limit(&self) -> i64 {
        self.number("memory_limit", field::MEMORY_LIMIT_IN_BYTES)
    }

    /// The adjustment of the OOM killer's score, -1000–1000.
    pub fn oom_score_adj(&self) -> i64 {
        self.number("oom_score_adj", field::OOM_SCORE_ADJ)
    }

    /// The CPUs that may be used, such as "0-3,7".
    pub fn cpuset_cpus(&self) -> String {
        self.text("cpuset_cpus", field::CPUSET_CPUS)
    }

    /// The memory nodes that may be used, such as "0-1".
    pub fn cpuset_mems(&self) -> String {
        self.text("cpuset_mems", field::CPUSET_MEMS)
    }

    /// The limit of memory plus swap in bytes.
    pub fn memory_swap(&self) -> i64 {
        self.number("memory_swap", field::MEMORY_SWAP_LIMIT_IN_BYTES)
    }
}

impl ResourcesMut {
    /// Sets the CFS period in microseconds, 1000–1000000.
    pub fn set_cpu_period(&self, us: i64) -> Result {
        self.set_number("set_cpu_period", field::CPU_PERIOD, us)
    }

    /// Sets the CFS quota in microseconds per period, -1 for no limit.
    pub fn set_cpu_quota(&self, us: i64) -> Result {
        self.set_number("set_cpu_quota", field::CPU_QUOTA, us)
    }

    /// Sets the relative weight, 2–262144, whatever the cgroup version.
    pub fn set_cpu_shares(&self, shares: i64) -> Result {
        self.set_number("set_cpu_shares", field::CPU_SHARES, shares)
    }

    /// Sets the memory limit in bytes.
    pub fn set_memory_limit(&self, bytes: i64) -> Result {
        self.set_number("set_memory_limit", field::MEMORY_LIMIT_IN_BYTES, bytes)
    }

    /// Sets the adjustment of the OOM killer's score, -1000–1000.
    pub fn set_oom_score_adj(&self, score: i64) -> Result {
        self.set_number("set_oom_score_adj", field::OOM_SCORE_ADJ, score)
    }

    /// Sets the CPUs that may be used, such as "0-3,7".
    pub fn set_cpuset_cpus(&self, list: &str) -> Result {
        self.set_text("set_cpuset_cpus", field::CPUSET_CPUS, list)
    }

    /// Sets the memory nodes that may be used, such as "0-1".
    pub fn set_cpuset_mems(&self, list: &str) -> Result {
        self.set_text("set_cpuset_mems", field::CPUSET_MEMS, list)
    }

    /// Sets the limit of memory plus swap in bytes.
    pub fn set_memory_swap(&self, bytes: i64) -> Result {
        self.set_number("set_memory_swap", field::MEMORY_SWAP_LIMIT_IN_BYTES, bytes)
    }
}
