//! A plugin for tests, which holds every type of event to the table of the ABI: its setters
//! reach what the hook may change, and nothing else.

use wasmproxy::*;

wasmproxy::plugin! {
    name: "everything",
    version: "1",
    tick_ms: 1000,
    needs: [
        StoreRead, Resources, Unified, Annotations, Labels, CgroupWrite, Metric, Env, CgroupRead, CgroupParent,
        RuntimeHandler, Image, Args, Mounts, Devices, Cdi, User, UpdateOthers, StateKv, CriRaw, Credentials,
    ],
    on PreRunPodSandbox(pre_run_pod_sandbox),
    on PostRunPodSandbox(|p| p.set_cgroup("cpu.idle", "1")),
    on PreCreateContainer(pre_create_container),
    on PostCreateContainer(|c| c.set_cgroup("cpu.idle", "1")),
    on PreStartContainer(|c| c.set_cgroup("cpu.idle", "1")),
    on PostStartContainer(|c| c.set_cgroup("cpu.idle", "1")),
    on PreUpdateContainerResources(pre_update_container_resources),
    on PostUpdateContainerResources(|c| c.set_cgroup("cpu.idle", "1")),
    on PostStopContainer(|_| Ok(())),
    on PostRemoveContainer(|_| Ok(())),
    on PostStopPodSandbox(|_| Ok(())),
    on PreStopContainer(|_| Ok(())),
    on PreRemoveContainer(|_| Ok(())),
    on PreStopPodSandbox(|_| Ok(())),
    on PreRemovePodSandbox(|_| Ok(())),
    on PostRemovePodSandbox(|_| Ok(())),
    on PreUpdatePodSandboxResources(pre_update_pod_sandbox_resources),
    on PostUpdatePodSandboxResources(|_| Ok(())),
    on PreExec(|_| Ok(())),
    on PostExec(|_| Ok(())),
    on PreExecSync(|_| Ok(())),
    on PostExecSync(|_| Ok(())),
    on PreAttach(|_| Ok(())),
    on PostAttach(|_| Ok(())),
    on PrePortForward(|_| Ok(())),
    on PostPortForward(|_| Ok(())),
    on PreCheckpointContainer(|_| Ok(())),
    on PostCheckpointContainer(|_| Ok(())),
    on PreCheckpointPod(|_| Ok(())),
    on PostCheckpointPod(|_| Ok(())),
    on PreRestorePod(|_| Ok(())),
    on PostRestorePod(|_| Ok(())),
    on PrePullImage(|e| e.set_image("i")),
    on PostPullImage(|_| Ok(())),
    on PreRemoveImage(|_| Ok(())),
    on PostRemoveImage(|_| Ok(())),
    on Synchronize(|p| p.set_cgroup("cpu.idle", "1")),
    on Tick(tick),
}

fn pre_run_pod_sandbox(p: &PreRunPodSandbox) -> Result {
    p.set_cgroup("cpu.idle", "1")?;
    p.set_label("k", "v")?;
    p.delete_label("d")?;
    p.set_annotation("k", "v")?;
    p.delete_annotation("d")?;
    p.set_cgroup_parent("/p")?;
    p.set_runtime_handler("h")
}

fn pre_create_container(c: &PreCreateContainer) -> Result {
    c.set_cgroup("cpu.idle", "1")?;
    c.set_annotation("k", "v")?;
    c.delete_annotation("d")?;
    c.set_cgroup_parent("/p")?;
    c.set_image("i")?;
    c.set_env("k", "v")?;
    c.delete_env("d")?;
    c.set_command(&["c"])?;
    c.set_args(&["a", "b"])?;
    c.set_working_dir("/w")?;
    c.add_mount(&Mount { container_path: "/c".into(), host_path: "/h".into(), readonly: true, ..Mount::default() })?;
    c.delete_mount("/d")?;
    c.add_device(&Device { container_path: "/c".into(), host_path: "/h".into(), permissions: "rw".into() })?;
    c.delete_device("/d")?;
    c.add_cdi_device("v/c=n")?;
    c.delete_cdi_device("v/c=d")?;
    c.set_run_as_user(0)?;
    c.set_run_as_group(1)?;
    c.set_run_as_username("u")?;
    c.add_supplemental_group(2)?;
    c.delete_supplemental_group(3)?;
    resources(c.resources())
}

fn pre_update_container_resources(c: &PreUpdateContainerResources) -> Result {
    c.set_cgroup("cpu.idle", "1")?;
    c.set_annotation("k", "v")?;
    resources(c.resources())
}

fn pre_update_pod_sandbox_resources(p: &PreUpdatePodSandboxResources) -> Result {
    resources(p.resources())?;
    resources(p.overhead())
}

fn resources(r: ResourcesMut) -> Result {
    set_resources(r)?;
    r.delete_unified("memory.low")
}

fn set_resources(r: ResourcesMut) -> Result {
    r.set_cpu_period(100_000)?;
    r.set_cpu_quota(-1)?;
    r.set_cpu_shares(2)?;
    r.set_memory_limit(1)?;
    r.set_memory_swap(1)?;
    r.set_oom_score_adj(-1000)?;
    r.set_cpuset_cpus("0")?;
    r.set_cpuset_mems("0")?;
    r.set_hugepage_limit("2MB", "1")?;
    r.set_unified("memory.high", "1")
}

/// Changes others: a pod that it lists, and its containers.
fn tick(t: &Tick) -> Result {
    for pod in pods("other") {
        t.update_pod(pod).set_cgroup("cpu.idle", "1")?;
        for container in pod.containers() {
            t.update(container).set_cgroup("cpu.idle", "1")?;
            let r = t.update(container).resources();
            set_resources(r)?;
            assert!(r.delete_unified("memory.low").unwrap_err().handled(Errno::Unsupported));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::PLUGIN;
    use wasmproxy::abi::{CGROUP_CONTAINER, CGROUP_POD, FIELDS, HOOKS, Phase, object};
    use wasmproxy::{Hook, test};

    fn case(hook: &str) -> String {
        format!(
            r#"{{"hook": "{hook}", "cgroup": "v2", "grant": ["*"], "pod": {{"id": "p"}}, "container": {{"id": "c"}},
            "store": [{{"pod": {{"id": "p2", "namespace": "other"}}, "containers": [{{"id": "c2"}}]}}]}}"#
        )
    }

    /// The fields and files that an answer is about: `container.args`, `pod cgroup file`.
    fn targets(answer: &test::Answer) -> BTreeSet<String> {
        let stem =
            |target: &String| target.split(['[']).next().unwrap().replace(" cgroup file cpu.idle", " cgroup file");
        answer.changes.keys().map(stem).collect()
    }

    #[test]
    fn setters_reach_what_the_table_allows() {
        let kinds = ["event", "pod", "container", "node"];
        for hook in HOOKS.iter().filter(|h| h.hook != Hook::Tick) {
            let bit = 1 << hook.hook as i32;
            let fields = FIELDS.iter().filter(|f| f.writable & bit != 0);
            let mut want: BTreeSet<_> = fields.map(|f| format!("{}.{}", kinds[f.object as usize], f.name)).collect();
            for (mask, kind) in [(CGROUP_POD, object::POD), (CGROUP_CONTAINER, object::CONTAINER)] {
                if mask & bit != 0 {
                    want.insert(format!("{} cgroup file", kinds[kind as usize]));
                }
            }
            let answer = test::call(&PLUGIN, &case(hook.name));
            assert_eq!(answer.error, None, "{}", hook.name);
            assert_eq!(targets(&answer), want, "{}", hook.name);
        }
    }

    #[test]
    fn others_take_what_handles_take() {
        let answer = test::call(&PLUGIN, &case("Tick"));
        let fields = FIELDS.iter().filter(|f| f.handle);
        let mut want: BTreeSet<_> = fields.map(|f| format!("container(c2).{}", f.name)).collect();
        want.extend(["container(c2) cgroup file".into(), "pod(p2) cgroup file".into()]);
        assert_eq!(answer.error, None);
        assert_eq!(targets(&answer), want);
    }

    #[test]
    fn lists_and_records_are_written_as_the_host_writes_them() {
        let changes = test::call(&PLUGIN, &case("PreCreateContainer")).changes;
        assert_eq!(changes["container.args"], r#"["a","b"]"#);
        assert_eq!(changes["container.mounts[\"/d\"]"], test::DELETED);
        assert_eq!(changes["container.cdi_devices[\"v/c=n\"]"], "true");
        assert_eq!(
            changes["container.devices[\"/c\"]"],
            r#"{"container_path":"/c","host_path":"/h","permissions":"rw"}"#
        );
        assert_eq!(
            changes["container.mounts[\"/c\"]"],
            r#"{"container_path":"/c","host_path":"/h","propagation":"private","readonly":"true"}"#
        );
    }

    #[test]
    fn all_that_comes_before_can_be_refused() {
        // That the others cannot is for the compiler: they have no method for it.
        let before = HOOKS.iter().filter(|h| h.phase == Phase::Before).count();
        let rejects = include_str!("../src/hook.rs").matches("{ reject ").count();
        assert_eq!(rejects, before);
    }
}
