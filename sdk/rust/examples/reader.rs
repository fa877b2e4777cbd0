//! A plugin for tests: reads every field of every object, with values that are all different.

use std::cell::RefCell;

use wasmproxy::*;

wasmproxy::plugin! {
    name: "reader",
    version: "1",
    needs: [StoreRead, Env, CgroupRead, CriRaw, StateKv, Metric],
    on PreStartContainer(start),
    on PostExecSync(exec_sync),
    on PostPullImage(pull),
    on PrePortForward(forward),
    on PreAttach(attach),
    on PostCheckpointPod(checkpoint),
}

thread_local! {
    static READ: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(values: &[&dyn std::fmt::Debug]) {
    READ.with_borrow_mut(|all| all.extend(values.iter().map(|v| format!("{v:?}"))));
}

fn pod(p: Pod) {
    note(&[
        &p.id(),
        &p.name(),
        &p.namespace(),
        &p.uid(),
        &p.attempt(),
        &p.runtime_handler(),
        &p.qos(),
        &p.cgroup_parent(),
    ]);
    note(&[
        &p.hostname(),
        &p.state(),
        &p.log_directory(),
        &p.network_namespace(),
        &p.pid_namespace(),
        &p.ipc_namespace(),
    ]);
    note(&[&p.user_namespace(), &p.privileged(), &p.labels(), &p.label("l"), &p.label("none"), &p.annotations()]);
    note(&[&p.annotation("a"), &p.annotation("none"), &p.sysctls(), &p.sysctl("s"), &p.sysctl("none")]);
    note(&[&p.port_mappings()]);
    resources(p.overhead());
    resources(p.resources());
}

fn resources(r: Resources) {
    note(&[&r.cpu_period(), &r.cpu_quota(), &r.cpu_shares(), &r.memory_limit(), &r.memory_swap(), &r.oom_score_adj()]);
    note(&[
        &r.cpuset_cpus(),
        &r.cpuset_mems(),
        &r.hugepage_limits(),
        &r.hugepage_limit("2MB"),
        &r.hugepage_limit("1GB"),
    ]);
    note(&[&r.unifieds(), &r.unified("u.u"), &r.unified("none")]);
}

fn container(c: Container) {
    note(&[&c.id(), &c.name(), &c.attempt(), &c.image(), &c.state(), &c.command(), &c.args(), &c.working_dir()]);
    note(&[&c.log_path(), &c.mounts(), &c.devices(), &c.cdi_devices(), &c.run_as_user(), &c.run_as_group()]);
    note(&[&c.run_as_username(), &c.supplemental_groups(), &c.privileged(), &c.readonly_rootfs(), &c.labels()]);
    note(&[&c.label("l"), &c.label("none"), &c.annotations(), &c.annotation("a"), &c.annotation("none")]);
    note(&[&c.image_id(), &c.image_repo_digests(), &c.image_volumes(), &c.image_volume("i"), &c.image_volume("none")]);
    note(&[&c.add_capabilities(), &c.drop_capabilities(), &c.add_ambient_capabilities(), &c.no_new_privs()]);
    note(&[&c.seccomp(), &c.apparmor()]);
    note(&[&c.env("E"), &c.env("none"), &c.envs(), &c.pod().id()]);
    resources(c.resources());
}

/// Reads everything twice: as the event's own, and through a handle.
fn start(c: &PreStartContainer) -> Result {
    let mut all = Vec::new();
    for c in [**c, find_container("c").ok_or("no c")?] {
        READ.set(Vec::new());
        pod(c.pod());
        container(c);
        all.push(READ.take());
    }
    assert_eq!(all[0], all[1]);
    log(Level::Info, &all[0].join("\n"));
    Ok(())
}

fn exec_sync(c: &PostExecSync) -> Result {
    note(&[&c.exec_command(), &c.timeout(), &c.exit_code(), &now(), &c.read_cgroup("cpu.stat"), &request(), &config()]);
    note(&[
        &c.pod().read_cgroup("cpu.stat"),
        &c.pod().read_qos_cgroup("memory.low"),
        &c.read_cgroup("none").is_err_and(|e| e.handled(Errno::NotFound)),
    ]);
    note(&[&kv::get("k"), &kv::get("none"), &has_feature(Feature::CgroupV2), &has_feature(Feature::CgroupFiles), &logs(Level::Debug)]);
    let mut bytes = [0; 4];
    random(&mut bytes)?;
    assert_ne!(bytes, [0; 4]);
    kv::set("k", b"new")?;
    kv::set("gone", "")?;
    kv::delete("gone")?;
    metric::add("a", 2)?;
    metric::add("a", 3)?;
    metric::set("b", -1)?;
    metric::observe("c{x=\"y\"}", 7)?;
    let node = Node;
    note(&[&node.cgroup_version(), &node.cgroup_driver(), &node.runtime_name(), &node.runtime_version()]);
    note(&[&node.runtime_handlers(), &node.cpus(), &node.memory(), &node.kernel()]);
    log(Level::Warn, &READ.take().join(" "));
    Ok(())
}

fn pull(e: &PostPullImage) -> Result {
    note(&[&e.image(), &e.image_ref(), &e.pod().id(), &e.pod().name()]);
    log(Level::Info, &READ.take().join(" "));
    Ok(())
}

fn forward(p: &PrePortForward) -> Result {
    note(&[&p.ports()]);
    p.reject(Code::PermissionDenied, &READ.take().join(" "))
}

fn attach(c: &PreAttach) -> Result {
    note(&[&c.tty(), &c.stdin()]);
    c.reject(Code::InvalidArgument, &READ.take().join(" "))
}

fn checkpoint(p: &PostCheckpointPod) -> Result {
    log(Level::Info, &p.location());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PLUGIN;
    use wasmproxy::{json, test};

    const EVENT: &str = include_str!("testdata/reader.json");

    #[test]
    fn every_field_is_read() {
        let answer = test::call(&PLUGIN, EVENT);
        assert_eq!(answer.error, None);
        let case = json::parse(EVENT).unwrap();
        for object in ["pod", "container"] {
            let fields = case.object(object).unwrap();
            for name in fields.keys() {
                let text = fields.parsed(&name, |t| Ok(t.to_string())).unwrap_or(None);
                assert!(text.is_none_or(|t| t == "1" || answer.log[0].contains(&t)), "{object}.{name} was not read");
            }
        }
        assert!(answer.log[0].contains(r#"propagation: Bidirectional"#), "{}", answer.log[0]);
        assert!(answer.log[0].contains("Some(0)"), "the user 0 that is said is lost in:\n{}", answer.log[0]);
    }

    /// Nothing but env is missing from the fixture, so that a getter that is forgotten shows.
    #[test]
    fn the_event_has_every_field() {
        let case = json::parse(EVENT).unwrap();
        for field in wasmproxy::abi::FIELDS.iter().filter(|f| [1, 2].contains(&f.object)) {
            let object = ["event", "pod", "container"][field.object as usize];
            let there = case.object(object).unwrap().has(field.name).unwrap();
            assert!(there || field.name == "pod_sandbox_id", "{object}.{}", field.name);
        }
    }

    #[test]
    fn the_host_and_the_node() {
        test::run(
            &PLUGIN,
            r#"{
            "hook": "PostExecSync", "time": 9, "grant": ["*"], "cgroup": "v1", "config": {"a": [1, "x"]}, "request": "AQID",
            "event": {"command": ["sh", "-c"], "timeout": 5, "exit_code": 3},
            "pod": {"id": "p", "qos": "Burstable"}, "container": {"id": "c"}, "kv": {"k": "old"},
            "cgroup_files": {"container": {"cpu.stat": "mine"}, "p": {"cpu.stat": "the pod's"}, "Burstable": {"memory.low": "the class's"}},
            "node": {"cgroup_version": 1, "cgroup_driver": "systemd", "runtime_name": "containerd", "runtime_version": "2",
                     "runtime_handlers": ["runc", "kata"], "cpus": 4, "memory": 1024, "kernel": "6.1"},
            "want": {
                "log": ["warn: [\"sh\", \"-c\"] 5 3 9 Ok(\"mine\") Ok([1, 2, 3]) \"{\\\"a\\\":[1,\\\"x\\\"]}\" Ok(\"the pod's\") Ok(\"the class's\") true Ok(Some([111, 108, 100])) Ok(None) false true true 1 \"systemd\" \"containerd\" \"2\" [\"runc\", \"kata\"] 4 1024 \"6.1\""],
                "kv": {"k": "new"},
                "metrics": {"a": 5, "b": -1, "c{x=\"y\"}": 7}
            }
        }"#,
        );
    }

    #[test]
    fn what_only_some_events_have() {
        test::run(
            &PLUGIN,
            r#"[
            {"hook": "PostPullImage", "event": {"image": "i", "image_ref": "i@sha256:1"}, "want": {"log": ["info: \"i\" \"i@sha256:1\" \"\" \"\""]}},
            {"hook": "PrePortForward", "pod": {}, "event": {"ports": ["80", "443"]}, "want": {"reject": {"code": 7, "reason": "[80, 443]"}}},
            {"hook": "PreAttach", "pod": {}, "container": {}, "event": {"tty": 1}, "want": {"reject": {"code": 3, "reason": "true false"}}},
            {"hook": "PostCheckpointPod", "pod": {}, "event": {"location": "/x"}, "want": {"log": ["info: /x"]}}
        ]"#,
        );
    }

    /// What a case leaves out is as in plugin test and go test.
    #[test]
    fn what_a_case_leaves_out() {
        let case = r#"{"hook": "PostExecSync", "grant": ["*"], "event": {"command": [], "timeout": 1, "exit_code": 0},
            "cgroup_files": {"container": {"cpu.stat": "c"}, "pod": {"cpu.stat": "p"}}}"#;
        let read = test::call(&PLUGIN, case);
        let node = r#"2 "cgroupfs" "containerd" "v2.2.0" ["", "runc"] 4 17179869184 "6.12.0""#;
        assert!(read.log[0].ends_with(node), "{}", read.log[0]);
        let case = r#"{"hook": "PreStartContainer", "grant": ["*"], "pod": {"qos": "Burstable"}, "container": {"id": "c"}}"#;
        let read = test::call(&PLUGIN, case);
        assert!(read.log[0].starts_with("info: \"pod\"\n"), "{}", read.log[0]);
        assert!(read.log[0].contains("\"/kubepods/burstable/pod\"\n"), "{}", read.log[0]);
    }
}
