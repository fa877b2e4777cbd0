//! The ranges and names that a host refuses, as far as ABI.md lists them.

use super::host::Host;
use super::object::Data;
use crate::Capability;
use crate::Errno::{self, *};
use crate::abi::{CGROUP_CONTAINER, CGROUP_FILES, CGROUP_POD, field, object};

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
        field::CPU_QUOTA => (1_000..=(1 << 44) - 1, true),
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

/// Refuses a CPU quota or memory limit of the container above what the case says of the pod's cgroup.
pub fn limit(host: &Host, o: i32, f: i32, value: &str) -> Result<(), Errno> {
    let quota = field::RESOURCES + field::CPU_QUOTA;
    if o != object::CONTAINER || f != quota && f != field::RESOURCES + field::MEMORY_LIMIT_IN_BYTES {
        return Ok(());
    }
    let (file, period) = match host.get(o, field::RESOURCES + field::CPU_PERIOD) {
        _ if f != quota => ("memory.max", 1),
        Ok(Data::Number(own)) if own > 0 => ("cpu.max", own),
        _ => ("cpu.max", 100_000),
    };
    let held = host.pod_file(file);
    let (most, each) = held.split_once(' ').unwrap_or((&held, "1"));
    let number = |text: &str| text.parse::<i128>();
    match (number(value), number(most), number(each)) {
        (Ok(n), Ok(most), Ok(each)) if n * each > most * i128::from(period) => match host.cgroup {
            Some(1) => Err(Unsupported),
            _ => host.need(Capability::PodLimits),
        },
        _ => Ok(()),
    }
}

/// The ways of the table of cgroup files.
pub const CGROUP_SET: u8 = 1;
const UNIFIED: u8 = 2;

/// Checks the name of a cgroup file that is written in a way.
pub fn file(kind: i32, name: &str, way: u8) -> Result<(), Errno> {
    let listed = CGROUP_FILES.iter().any(|row| {
        let ways = if kind == object::POD { row.pod } else { row.container };
        ways & way != 0 && named(row.name, name)
    });
    if listed { Ok(()) } else { Err(Denied) }
}

/// Reports whether a row of the table has the name.
fn named(row: &str, name: &str) -> bool {
    let Some((before, after)) = row.split_once("<size>") else { return row == name };
    let size =
        name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).and_then(|size| size.strip_suffix('B'));
    let number = size.and_then(|size| size.strip_suffix(['K', 'M', 'G']));
    number.is_some_and(|n| !n.is_empty() && !n.starts_with('0') && n.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Checks the key of a map or set.
pub fn key(host: &Host, kind: i32, f: i32, key: &str) -> Result<(), Errno> {
    let labels = [field::POD_LABELS, field::POD_ANNOTATIONS];
    if resource(kind, f).is_none() && labels.contains(&f) && key.starts_with("io.kubernetes.") {
        return Err(Denied);
    }
    if resource(kind, f) == Some(field::UNIFIED) {
        return match host.cgroup {
            Some(2) if !key.contains('.') || key.contains(['/', '\0', '\n']) => Err(Invalid),
            Some(2) => file(kind, key, UNIFIED),
            _ => Err(Unsupported),
        };
    }
    let env = kind == object::CONTAINER && f == field::CONTAINER_ENV;
    if key.is_empty() || key.contains('\0') || env && key.contains('=') {
        return Err(Invalid);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_table_are_written() {
        for name in [
            "cgroup.procs", "cgroup.kill", "memory.hihg", "hugetlb.max", "hugetlb.02MB.max", "hugetlb.2M.max", "",
            "cpu.shares",
        ] {
            for way in [CGROUP_SET, UNIFIED] {
                assert_eq!(file(object::CONTAINER, name, way), Err(Denied), "{name}");
            }
        }
        assert_eq!(file(object::POD, "cpu.max", CGROUP_SET), Err(Denied));
        for name in ["cpu.weight", "memory.high", "hugetlb.2MB.max", "hugetlb.1GB.rsvd.max", "io.max"] {
            for way in [CGROUP_SET, UNIFIED] {
                assert_eq!(file(object::CONTAINER, name, way), Ok(()), "{name}");
            }
        }
        assert_eq!(file(object::POD, "cpu.idle", CGROUP_SET), Ok(()));
    }
}
