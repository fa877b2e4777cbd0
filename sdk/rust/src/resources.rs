use std::ops::Deref;

use crate::abi::field;
use crate::{Errno, Result, host, read, write};

/// What CRI calls LinuxContainerResources. 0 or "" means that the request does not say.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    pub(crate) object: i32,
    pub(crate) base: i32,
}

impl Resources {
    fn number(&self, op: &str, f: i32) -> i64 {
        read::number(op, self.object, self.base + f)
    }

    /// Reports whether the host knows all of the resources. cri-dockerd does not report them of
    /// containers that are older than the proxy's process: the host then has those that the
    /// kernel shows, and a handler that reads another one, such as `oom_score_adj`, fails.
    pub fn reported(&self) -> bool {
        host::get_i64(self.object, self.base + field::OOM_SCORE_ADJ) != Err(Errno::Unsupported as i32)
    }

    /// The CFS period in microseconds.
    pub fn cpu_period(&self) -> i64 {
        self.number("cpu_period", field::CPU_PERIOD)
    }

    /// The CFS quota in microseconds per period, -1 for no limit.
    pub fn cpu_quota(&self) -> i64 {
        self.number("cpu_quota", field::CPU_QUOTA)
    }

    /// The relative weight, 2 to 262144, whatever the cgroup version.
    pub fn cpu_shares(&self) -> i64 {
        self.number("cpu_shares", field::CPU_SHARES)
    }

    /// The memory limit in bytes.
    pub fn memory_limit(&self) -> i64 {
        self.number("memory_limit", field::MEMORY_LIMIT_IN_BYTES)
    }

    /// The limit of memory plus swap in bytes.
    pub fn memory_swap(&self) -> i64 {
        self.number("memory_swap", field::MEMORY_SWAP_LIMIT_IN_BYTES)
    }

    /// The adjustment of the OOM killer's score, -1000 to 1000.
    pub fn oom_score_adj(&self) -> i64 {
        self.number("oom_score_adj", field::OOM_SCORE_ADJ)
    }

    /// The CPUs that may be used, such as `0-3,7`.
    pub fn cpuset_cpus(&self) -> String {
        read::text("cpuset_cpus", self.object, self.base + field::CPUSET_CPUS)
    }

    /// The memory nodes that may be used, such as `0-1`.
    pub fn cpuset_mems(&self) -> String {
        read::text("cpuset_mems", self.object, self.base + field::CPUSET_MEMS)
    }

    /// The limit in bytes for a page size such as `2MB`, in decimal.
    pub fn hugepage_limit(&self, page_size: &str) -> Option<String> {
        read::entry("hugepage_limit", self.object, self.base + field::HUGEPAGE_LIMITS, page_size)
    }

    /// The limits by page size.
    pub fn hugepage_limits(&self) -> Vec<(String, String)> {
        read::entries("hugepage_limits", self.object, self.base + field::HUGEPAGE_LIMITS)
    }

    /// What the request asks to be written to a cgroup v2 file.
    pub fn unified(&self, file: &str) -> Option<String> {
        read::entry("unified", self.object, self.base + field::UNIFIED, file)
    }

    /// The cgroup v2 files that the request asks to be written.
    pub fn unifieds(&self) -> Vec<(String, String)> {
        read::entries("unifieds", self.object, self.base + field::UNIFIED)
    }
}

/// Resources that can be changed in this hook. The setters need
/// [`Capability::Resources`](crate::Capability::Resources), those of `unified`
/// [`Capability::Unified`](crate::Capability::Unified).
#[derive(Clone, Copy, Debug)]
pub struct ResourcesMut(pub(crate) Resources);

impl Deref for ResourcesMut {
    type Target = Resources;

    fn deref(&self) -> &Resources {
        &self.0
    }
}

impl ResourcesMut {
    fn set_number(&self, op: &str, f: i32, value: i64) -> Result {
        write::number(op, self.object, self.base + f, value)
    }

    fn set_text(&self, op: &str, f: i32, value: &str) -> Result {
        write::text(op, self.object, self.base + f, value)
    }

    /// Sets the CFS period, 1000 to 1000000 microseconds.
    pub fn set_cpu_period(&self, microseconds: i64) -> Result {
        self.set_number("set_cpu_period", field::CPU_PERIOD, microseconds)
    }

    /// Sets the CFS quota in microseconds per period, 1000 or more, or -1 for no limit.
    pub fn set_cpu_quota(&self, microseconds: i64) -> Result {
        self.set_number("set_cpu_quota", field::CPU_QUOTA, microseconds)
    }

    /// Sets the relative weight, 2 to 262144, whatever the cgroup version.
    pub fn set_cpu_shares(&self, shares: i64) -> Result {
        self.set_number("set_cpu_shares", field::CPU_SHARES, shares)
    }

    /// Sets the memory limit in bytes.
    pub fn set_memory_limit(&self, bytes: i64) -> Result {
        self.set_number("set_memory_limit", field::MEMORY_LIMIT_IN_BYTES, bytes)
    }

    /// Sets the limit of memory plus swap in bytes.
    pub fn set_memory_swap(&self, bytes: i64) -> Result {
        self.set_number("set_memory_swap", field::MEMORY_SWAP_LIMIT_IN_BYTES, bytes)
    }

    /// Sets the adjustment of the OOM killer's score, -1000 to 1000.
    pub fn set_oom_score_adj(&self, adjustment: i64) -> Result {
        self.set_number("set_oom_score_adj", field::OOM_SCORE_ADJ, adjustment)
    }

    /// Sets the CPUs that may be used, such as `0-3,7`.
    pub fn set_cpuset_cpus(&self, cpus: &str) -> Result {
        self.set_text("set_cpuset_cpus", field::CPUSET_CPUS, cpus)
    }

    /// Sets the memory nodes that may be used, such as `0-1`.
    pub fn set_cpuset_mems(&self, nodes: &str) -> Result {
        self.set_text("set_cpuset_mems", field::CPUSET_MEMS, nodes)
    }

    /// Sets the limit in bytes for a page size such as `2MB`, in decimal.
    pub fn set_hugepage_limit(&self, page_size: &str, bytes: &str) -> Result {
        write::entry("set_hugepage_limit", self.object, self.base + field::HUGEPAGE_LIMITS, page_size, bytes)
    }

    /// Takes the limit for a page size out of the request. Of another container's it is
    /// [`Errno::Unsupported`](crate::Errno::Unsupported): its runtime takes nothing away.
    pub fn delete_hugepage_limit(&self, page_size: &str) -> Result {
        write::delete_entry("delete_hugepage_limit", self.object, self.base + field::HUGEPAGE_LIMITS, page_size)
    }

    /// Asks the runtime to write a cgroup v2 file, one of those in the table "Cgroup files" of
    /// ABI.md. On cgroup v1 it is
    /// [`Errno::Unsupported`](crate::Errno::Unsupported).
    pub fn set_unified(&self, file: &str, value: &str) -> Result {
        write::entry("set_unified", self.object, self.base + field::UNIFIED, file, value)
    }

    /// Takes a cgroup v2 file out of the request. Of another container's it is
    /// [`Errno::Unsupported`](crate::Errno::Unsupported): its runtime takes nothing away.
    pub fn delete_unified(&self, file: &str) -> Result {
        write::delete_entry("delete_unified", self.object, self.base + field::UNIFIED, file)
    }
}
