//! A plugin that gives pods and containers of a namespace annotations that they have unless
//! they say otherwise. README.md is its manual.

mod config;

use config::Defaults;
use wasmproxy::{PreCreateContainer, PreRunPodSandbox, Result};

wasmproxy::plugin! {
    name: "default-annotations",
    version: "1.0.0",
    description: "annotations that pods and containers of a namespace have unless they say otherwise",
    license: "Apache-2.0",
    config: Defaults = config::parse,
    config_schema: include_str!("../schema.json"),
    needs: [Annotations],
    on PreRunPodSandbox(run),
    on PreCreateContainer(create),
}

/// Gives the pod what it does not have.
fn run(defaults: &Defaults, pod: &PreRunPodSandbox) -> Result {
    for (key, value) in defaults.of(&pod.namespace()) {
        if pod.annotation(key).is_none() {
            pod.set_annotation(key, value)?;
        }
    }
    Ok(())
}

/// Gives the container what its pod has: its own annotation or the default, which pods that
/// are older than the plugin were not given.
fn create(defaults: &Defaults, container: &PreCreateContainer) -> Result {
    let pod = container.pod();
    for (key, value) in defaults.of(&pod.namespace()) {
        if container.annotation(key).is_none() {
            container.set_annotation(key, pod.annotation(key).as_deref().unwrap_or(value))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PLUGIN;

    #[test]
    fn fixtures() {
        wasmproxy::test::run_files(&PLUGIN, "testdata");
    }

    #[test]
    fn the_manifest_is_json() {
        let manifest = wasmproxy::json::parse(PLUGIN.manifest()).unwrap();
        assert_eq!(manifest.object("config_schema").unwrap().has("properties"), Ok(true));
    }
}
