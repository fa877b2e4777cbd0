//! The plugin of plugins-wasm/qos in Rust: gives the containers of a pod what its
//! annotations ask for and Kubernetes has no field for.

use wasmproxy::{
    Container, Errno, Error, Level, PreCreateContainer, PreStartContainer, PreUpdateContainerResources, ResourcesMut,
    Result, log,
};

wasmproxy::plugin! {
    name: "qos",
    version: "1.0.0",
    description: "CPU burst, idle CPU and memory.high of containers, by pod annotation",
    license: "Apache-2.0",
    needs: [CgroupWrite, Unified],
    on PreCreateContainer(create),
    on PreStartContainer(start),
    on PreUpdateContainerResources(update),
}

/// Asks for everything: what CRI can say goes into the request, cgroup files are written
/// when the container has started.
fn create(c: &PreCreateContainer) -> Result {
    set_memory(c, c.resources())?;
    set_cpu(c, &|file, value| c.set_cgroup(file, value))
}

/// Asks for the cgroup files again. The proxy keeps what `create` asked for in memory only,
/// and may have been restarted since.
fn start(c: &PreStartContainer) -> Result {
    set_cpu(c, &|file, value| c.set_cgroup(file, value))
}

/// Asks for everything again: the quota that bounds a burst may be another now.
fn update(c: &PreUpdateContainerResources) -> Result {
    set_memory(c, c.resources())?;
    set_cpu(c, &|file, value| c.set_cgroup(file, value))
}

type SetCgroup<'a> = &'a dyn Fn(&str, &str) -> Result;

fn set_cpu(c: &Container, set: SetCgroup) -> Result {
    if let Some((key, burst)) = asked(c, "qos.wasmproxy.io/cpu-burst", 0, (1 << 44) - 1)? {
        let quota = c.resources().cpu_quota();
        let burst = if quota > 0 { burst.min(quota) } else { burst };
        set("cpu.max.burst", &burst.to_string()).map_err(|e| annotation(&key, e))?;
    }
    if let Some((key, idle)) = asked(c, "qos.wasmproxy.io/cpu-idle", 0, 1)? {
        set("cpu.idle", &idle.to_string()).map_err(|e| annotation(&key, e))?;
    }
    Ok(())
}

fn set_memory(c: &Container, resources: ResourcesMut) -> Result {
    let Some((key, bytes)) = asked(c, "qos.wasmproxy.io/memory-high", 1, i64::MAX)? else { return Ok(()) };
    match resources.set_unified("memory.high", &bytes.to_string()) {
        Err(e) if e.handled(Errno::Unsupported) => {
            log(Level::Info, &[&key, " needs cgroup v2, and this node has v1: not set"].concat());
            Ok(())
        }
        other => other.map_err(|e| annotation(&key, e)),
    }
}

/// Returns what the pod asks for the container, and by which annotation: the one with the
/// container's name, else the one for all.
fn asked(c: &Container, key: &str, min: i64, max: i64) -> Result<Option<(String, i64)>> {
    let own = [key, ".", &c.name()].concat();
    let (key, text) = match c.pod().annotation(&own) {
        Some(text) => (own, text),
        None => match c.pod().annotation(key) {
            Some(text) => (key.to_string(), text),
            None => return Ok(None),
        },
    };
    match text.parse() {
        Ok(v) if (min..=max).contains(&v) => Ok(Some((key, v))),
        _ => Err(format!("annotation {key}: \"{text}\" is not a whole number from {min} to {max}").into()),
    }
}

fn annotation(key: &str, e: Error) -> Error {
    e.context(&["annotation ", key].concat())
}

#[cfg(test)]
mod tests {
    use super::PLUGIN;

    #[test]
    fn fixtures() {
        wasmproxy::test::run_files(&PLUGIN, "examples/testdata/qos.json");
    }
}
