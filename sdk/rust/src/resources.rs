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
    pub(crate) fn number(&self, op: &str, f: i32) -> i64 {
        read::number(op, self.object, self.base + f)
    }

    pub(crate) fn text(&self, op: &str, f: i32) -> String {
        read::text(op, self.object, self.base + f)
    }

    /// Reports whether the host knows all of the resources. cri-dockerd does not report them of
    /// containers that are older than the proxy's process: the host then has those that the
    /// kernel shows, and a handler that reads another one, such as `oom_score_adj`, fails.
    pub fn reported(&self) -> bool {
        host::get_i64(self.object, self.base + field::OOM_SCORE_ADJ) != Err(Errno::Unsupported as i32)
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
    pub(crate) fn set_number(&self, op: &str, f: i32, value: i64) -> Result {
        write::number(op, self.object, self.base + f, value)
    }

    pub(crate) fn set_text(&self, op: &str, f: i32, value: &str) -> Result {
        write::text(op, self.object, self.base + f, value)
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
