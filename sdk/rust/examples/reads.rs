//! A plugin for benchmarks: reads as much of a pod as its configuration says, or five fields,
//! and writes three.

use wasmproxy::{PostRunPodSandbox, PreCreateContainer, Result};

wasmproxy::plugin! {
    name: "reads",
    version: "1.0.0",
    needs: [Resources, Annotations],
    config: usize = |text| Ok(text.parse()?),
    state: Instance, // putting memory back costs more than the reads
    on PostRunPodSandbox(read),
    on PreCreateContainer(read_and_write),
}

/// An ordinary hook: five reads and three writes.
fn read_and_write(_: &usize, c: &PreCreateContainer) -> Result {
    let (pod, resources) = (c.pod(), c.resources());
    if pod.namespace() != "production" || pod.annotation("example.com/annotation-1").is_none() || c.name().is_empty() {
        return Err("another pod".into());
    }
    resources.set_cpu_quota(2 * resources.cpu_quota())?;
    resources.set_memory_limit(2 * resources.memory_limit())?;
    c.set_annotation("example.com/doubled", "true")
}

/// Reads names and numbers in turns.
fn read(reads: &usize, p: &PostRunPodSandbox) -> Result {
    let mut length = 0;
    for i in 0..*reads {
        length += match i % 8 {
            0 => p.namespace().len() as i64,
            1 => p.resources().cpu_quota(),
            2 => p.name().len() as i64,
            3 => p.resources().memory_limit(),
            4 => p.qos().len() as i64,
            5 => p.resources().cpu_period(),
            6 => p.cgroup_parent().len() as i64,
            _ => p.overhead().memory_limit(),
        };
    }
    if length == 1 {
        return Err("never so, but nothing above may be left out".into());
    }
    Ok(())
}
