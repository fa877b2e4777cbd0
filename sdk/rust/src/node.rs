use crate::abi::object;

/// The node that the proxy runs on.
#[derive(Clone, Copy, Debug)]
pub struct Node;

impl Node {
    /// A file of the root cgroup by its cgroup v2 name, such as `cpu.stat` or `cpu.pressure`. It needs
    /// [`Capability::CgroupRead`](crate::Capability::CgroupRead). A file that the kernel does not have there is
    /// [`Errno::Unsupported`](crate::Errno::Unsupported).
    pub fn read_cgroup(&self, file: &str) -> crate::Result<String> {
        crate::pod::cgroup(object::NODE, file)
    }
}
