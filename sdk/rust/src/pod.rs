use crate::abi::{field, object};
use crate::{Container, Resources, Result, codec, error, host, read};

/// A pod sandbox. Its methods return "" or 0 for what the pod does not have. It is valid
/// while the handler that got it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod(pub(crate) i32);

impl Pod {
    pub(crate) const OF_EVENT: Pod = Pod(object::POD);

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

    /// `ready` or `notready`, "" before it is created.
    pub fn state(&self) -> String {
        read::text("state", self.0, field::POD_STATE)
    }

    /// The directory of its containers' logs.
    pub fn log_directory(&self) -> String {
        read::text("log_directory", self.0, field::POD_LOG_DIRECTORY)
    }

    /// Whose network it has: `pod`, `container`, `node` or `target`.
    pub fn network_namespace(&self) -> String {
        read::text("network_namespace", self.0, field::POD_NETWORK_NAMESPACE)
    }

    /// Whose processes it sees: `pod`, `container`, `node` or `target`.
    pub fn pid_namespace(&self) -> String {
        read::text("pid_namespace", self.0, field::POD_PID_NAMESPACE)
    }

    /// Whose IPC it has: `pod`, `container`, `node` or `target`.
    pub fn ipc_namespace(&self) -> String {
        read::text("ipc_namespace", self.0, field::POD_IPC_NAMESPACE)
    }

    /// Whose users it has: `pod`, `container`, `node` or `target`.
    pub fn user_namespace(&self) -> String {
        read::text("user_namespace", self.0, field::POD_USER_NAMESPACE)
    }

    /// Whether its sandbox is privileged.
    pub fn privileged(&self) -> bool {
        read::number("privileged", self.0, field::POD_PRIVILEGED) == 1
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<String> {
        read::entry("label", self.0, field::POD_LABELS, key)
    }

    /// The labels, sorted by key.
    pub fn labels(&self) -> Vec<(String, String)> {
        read::entries("labels", self.0, field::POD_LABELS)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        read::entry("annotation", self.0, field::POD_ANNOTATIONS, key)
    }

    /// The annotations, sorted by key.
    pub fn annotations(&self) -> Vec<(String, String)> {
        read::entries("annotations", self.0, field::POD_ANNOTATIONS)
    }

    /// The value of a sysctl.
    pub fn sysctl(&self, key: &str) -> Option<String> {
        read::entry("sysctl", self.0, field::POD_SYSCTLS, key)
    }

    /// The sysctls, sorted by key.
    pub fn sysctls(&self) -> Vec<(String, String)> {
        read::entries("sysctls", self.0, field::POD_SYSCTLS)
    }

    /// What the pod's sandbox itself costs, by its RuntimeClass.
    pub fn overhead(&self) -> Resources {
        Resources { object: self.0, base: field::OVERHEAD }
    }

    /// The sum of the resources of the pod's containers.
    pub fn resources(&self) -> Resources {
        Resources { object: self.0, base: field::RESOURCES }
    }

    /// The containers of the pod that the proxy knows, sorted by id. The one that is about
    /// to be created is not among them.
    pub fn containers(&self) -> Vec<Container> {
        read::handles("containers", |buf| host::container_list(self.0, buf)).into_iter().map(Container).collect()
    }

    /// A file of the pod's cgroup by its cgroup v2 name, such as `cpu.stat`. It needs
    /// [`Capability::CgroupRead`](crate::Capability::CgroupRead).
    pub fn cgroup(&self, file: &str) -> Result<String> {
        cgroup(self.0, file)
    }
}

pub(crate) fn cgroup(object: i32, file: &str) -> Result<String> {
    let bytes = read::fill(|buf| host::cgroup_get(object, file, buf));
    bytes.map(codec::string).map_err(|n| error::refused("cgroup", file, n))
}
