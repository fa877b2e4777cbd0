//! The ranges and names that a host refuses, as far as ABI.md lists them.

use super::host::Host;
use crate::Errno::{self, *};
use crate::abi::{CGROUP_CONTAINER, CGROUP_POD, field, object};

/// The hooks in which `cgroup_set` takes an object, one bit each.
pub fn cgroup_hooks(kind: i32) -> u64 {
    match kind {
        object::POD => CGROUP_POD,
        object::CONTAINER => CGROUP_CONTAINER,
        _ => 0,
    }
}

/// Which of LinuxContainerResources a field is.
fn resource(kind: i32, f: i32) -> Option<i32> {
    match kind {
        object::POD if (field::OVERHEAD..field::RESOURCES).contains(&f) => Some(f - field::OVERHEAD),
        object::POD | object::CONTAINER if f >= field::RESOURCES => Some(f - field::RESOURCES),
        _ => None,
    }
}

/// Checks the value of a number, text or list.
pub fn value(kind: i32, f: i32, value: &str) -> Result<(), Errno> {
    let Some(resource) = resource(kind, f) else { return Ok(()) };
    let (range, unlimited) = match resource {
        field::CPU_PERIOD => (1_000..=1_000_000, false),
        field::CPU_QUOTA => (1_000..=1 << 44, true),
        field::CPU_SHARES => (2..=262_144, false),
        field::MEMORY_LIMIT_IN_BYTES | field::MEMORY_SWAP_LIMIT_IN_BYTES => (1..=i64::MAX, true),
        field::OOM_SCORE_ADJ => (-1_000..=1_000, false),
        _ => return Ok(()),
    };
    match value.parse() {
        Ok(v) if range.contains(&v) || unlimited && v == -1 => Ok(()),
        _ => Err(Invalid),
    }
}

/// Checks the key of a map or set.
pub fn key(host: &Host, kind: i32, f: i32, key: &str) -> Result<(), Errno> {
    let labels = [field::POD_LABELS, field::POD_ANNOTATIONS];
    if resource(kind, f).is_none() && labels.contains(&f) && key.starts_with("io.kubernetes.") {
        return Err(Denied);
    }
    if resource(kind, f) == Some(field::UNIFIED) && host.cgroup != Some(2) {
        return Err(Unsupported);
    }
    let env = kind == object::CONTAINER && f == field::CONTAINER_ENV;
    if key.is_empty() || key.contains('\0') || env && key.contains('=') {
        return Err(Invalid);
    }
    Ok(())
}
