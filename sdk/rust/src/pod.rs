use crate::abi::{field, object};
use crate::{Container, Resources, Result, codec, error, host, read, write};

/// A pod sandbox. Its methods return "" or 0 for what the pod does not have. It is valid
/// while the handler that got it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod(pub(crate) i32);

impl Pod {
    pub(crate) const OF_EVENT: Pod = Pod(object::POD);

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
    pub fn read_cgroup(&self, file: &str) -> Result<String> {
        cgroup(self.0, file)
    }

    /// A file of the cgroup of the pod's QoS class by its cgroup v2 name, such as `memory.min`.
    /// The class is the parent of the pod's cgroup, and belongs to kubelet: no plugin writes it.
    /// It needs [`Capability::CgroupRead`](crate::Capability::CgroupRead). For a pod outside
    /// kubelet's cgroups it is [`Errno::NotFound`](crate::Errno::NotFound).
    pub fn read_qos_cgroup(&self, file: &str) -> Result<String> {
        cgroup(object::QOS_CLASS + self.0, file)
    }

    /// Takes back what the plugin has set of a field of the pod, such as
    /// [`POD_LABELS`](crate::abi::field::POD_LABELS), as [`Container::withdraw`] does.
    pub fn withdraw(&self, field: i32, key: &str) -> Result {
        write::withdraw("withdraw", self.0, field, key)
    }

    /// Takes back what the plugin has asked for of a file of the pod's cgroup, in this call or an earlier one.
    pub fn withdraw_cgroup(&self, file: &str) -> Result {
        write::withdraw("withdraw_cgroup", self.0, 0, file)
    }
}

pub(crate) fn cgroup(object: i32, file: &str) -> Result<String> {
    let bytes = read::fill(|buf| host::cgroup_get(object, file, buf));
    bytes.map(codec::string).map_err(|n| error::refused("read_cgroup", file, n, false))
}
