//! A plugin for benchmarks: reads five fields and writes three.

use wasmproxy::{PreCreateContainer, Result};

wasmproxy::plugin! {
    name: "reads",
    version: "1.0.0",
    needs: [Resources, Annotations],
    state: Instance, // putting memory back costs more than the reads
    on PreCreateContainer(read_and_write),
}

/// An ordinary hook: five reads and three writes.
fn read_and_write(c: &PreCreateContainer) -> Result {
    let (pod, resources) = (c.pod(), c.resources());
    if pod.namespace() != "production" || pod.annotation("example.com/annotation-1").is_none() || c.name().is_empty() {
        return Err("another pod".into());
    }
    resources.set_cpu_quota(2 * resources.cpu_quota())?;
    resources.set_memory_limit(2 * resources.memory_limit())?;
    c.set_annotation("example.com/doubled", "true")
}
