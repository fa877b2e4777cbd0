use crate::abi::{field, object};
use crate::read;

/// The node that the proxy runs on.
#[derive(Clone, Copy, Debug)]
pub struct Node;

impl Node {
    /// The version of its cgroup hierarchy, 1 or 2.
    pub fn cgroup_version(&self) -> i64 {
        read::number("cgroup_version", object::NODE, field::NODE_CGROUP_VERSION)
    }

    /// `systemd` or `cgroupfs`, "" where the runtime does not say.
    pub fn cgroup_driver(&self) -> String {
        read::text("cgroup_driver", object::NODE, field::NODE_CGROUP_DRIVER)
    }

    /// The name of the container runtime, such as `containerd`.
    pub fn runtime_name(&self) -> String {
        read::text("runtime_name", object::NODE, field::NODE_RUNTIME_NAME)
    }

    /// The version of the container runtime.
    pub fn runtime_version(&self) -> String {
        read::text("runtime_version", object::NODE, field::NODE_RUNTIME_VERSION)
    }

    /// The names of the runtime's handlers.
    pub fn runtime_handlers(&self) -> Vec<String> {
        read::texts("runtime_handlers", object::NODE, field::NODE_RUNTIME_HANDLERS)
    }

    /// How many CPUs are online.
    pub fn cpus(&self) -> i64 {
        read::number("cpus", object::NODE, field::NODE_CPUS)
    }

    /// Its memory in bytes.
    pub fn memory(&self) -> i64 {
        read::number("memory", object::NODE, field::NODE_MEMORY)
    }

    /// A file of the root cgroup by its cgroup v2 name, such as `cpu.stat` or `cpu.pressure`. It needs
    /// [`Capability::CgroupRead`](crate::Capability::CgroupRead). A file that the kernel does not have there is
    /// [`Errno::Unsupported`](crate::Errno::Unsupported).
    pub fn read_cgroup(&self, file: &str) -> crate::Result<String> {
        crate::pod::cgroup(object::NODE, file)
    }

    /// The kernel's release, as `uname -r` has it.
    pub fn kernel(&self) -> String {
        read::text("kernel", object::NODE, field::NODE_KERNEL)
    }
}
