//! The program of sdk/internal/calls in Rust: what every SDK offers beyond a container's
//! own fields, by its types.

use wasmproxy::abi::field::{CPU_PERIOD, CPU_SHARES, RESOURCES};
use wasmproxy::*;

wasmproxy::plugin! {
    name: "calls",
    version: "1.0.0",
    tick_ms: 1000,
    needs: [
        StoreRead, Resources, CgroupRead, CgroupWrite, UpdateOthers, Args, Mounts, Devices, Cdi, User, Image, StateKv,
        Metric, CriRaw,
    ],
    on Tick(|e| calm("batch", &|c| e.update(c))),
    on PreStartContainer(|e| calm("own", &|c| e.update(c))),
    on PreCreateContainer(rearrange),
    on PreUpdateContainerResources(slow),
    on PostStartContainer(survey),
    on PostExecSync(count),
    on PrePullImage(|e| e.set_image(&e.image().replacen("docker.io", "mirror.example.com", 1))),
    on PreExec(guard),
    on PreUpdatePodSandboxResources(double),
}

/// Slows the running containers of a namespace.
fn calm(namespace: &str, update: &dyn Fn(Container) -> ContainerUpdate) -> Result {
    for pod in pods(namespace) {
        for c in pod.containers() {
            if c.state() != "running" || c.pod().id() != pod.id() {
                continue;
            }
            update(c).resources().set_cpu_shares(2)?;
            match c.read_cgroup("cpu.stat") {
                Err(e) if e.handled(Errno::NotFound) => log(Level::Debug, &format!("{} has no cpu.stat", c.id())),
                stat => {
                    log(Level::Info, &format!("{} {}", c.id(), stat?));
                    update(c).set_cgroup("cpu.idle", "1")?;
                }
            }
        }
    }
    Ok(())
}

/// Reads two files of every container.
fn survey(c: &PostStartContainer) -> Result {
    let all = containers();
    for (c, row) in all.iter().zip(read_cgroups(&all, &["cpu.stat", "memory.current"])?) {
        let texts: Vec<_> = row.into_iter().map(|file| file.unwrap_or_else(|e| e.name().into())).collect();
        log(Level::Info, &format!("{} {}", c.id(), texts.join(" ")));
    }
    classes(c.pod())
}

/// Reads a file of the QoS class of every pod.
fn classes(own: Pod) -> Result {
    for pod in pods("") {
        match pod.read_qos_cgroup("memory.min") {
            Err(e) if e.handled(Errno::NotFound) => log(Level::Info, &format!("{} is in no QoS class", pod.id())),
            min => log(Level::Info, &format!("{} has {}'s {}", pod.id(), pod.qos(), min?)),
        }
    }
    log(Level::Info, &format!("its own has {}", own.read_qos_cgroup("memory.min")?));
    Ok(())
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Changes every list of a container by what it finds there.
fn rearrange(c: &PreCreateContainer) -> Result {
    c.set_command(&c.command())?;
    let args = c.args();
    c.set_args(&[texts(&args), vec!["--verbose"]].concat())?;
    for m in c.mounts() {
        c.delete_mount(&m.container_path)?;
        c.add_mount(&Mount { container_path: "/copy".into(), recursive_read_only: true, selinux_relabel: true, ..m })?;
    }
    for d in c.devices() {
        c.add_device(&Device { container_path: "/dev/c".into(), ..d })?;
    }
    if c.cdi_devices() == ["example.com/gpu=0"] {
        c.add_cdi_device("example.com/gpu=1")?;
    }
    for gid in c.supplemental_groups() {
        c.delete_supplemental_group(gid)?;
        c.add_supplemental_group(gid + 1)?;
    }
    if c.run_as_user() != Some(0) || c.run_as_group().is_some() {
        return Err("the user is not root, or there is a group".into());
    }
    c.set_run_as_group(1000)
}

/// Slows a container as long as it has a label, and yields to plugins before it.
fn slow(c: &PreUpdateContainerResources) -> Result {
    if c.label("slow").is_none() {
        c.resources().set_cpu_period(5000)?;
        c.withdraw(RESOURCES + CPU_PERIOD, "")?;
        c.withdraw(RESOURCES + CPU_SHARES, "")?;
        return c.withdraw_cgroup("cpu.idle");
    }
    match c.resources().set_cpu_shares(2) {
        Err(e) if e.handled(Errno::Conflict) => {
            log(Level::Info, &format!("{} was first", conflict_with().unwrap_or_default()));
        }
        set => set?,
    }
    c.set_cgroup("cpu.idle", "1")
}

/// Keeps and counts what is run.
fn count(e: &PostExecSync) -> Result {
    let text = kv::get("count")?.map(|v| String::from_utf8_lossy(&v).into_owned());
    let Some(text) = text else { return Ok(()) };
    kv::set("last", "nothing")?;
    let n: i64 = text.parse().map_err(|_| Error::from(format!("count is \"{text}\"").as_str()))?;
    kv::set("count", (n + 1).to_string())?;
    kv::set("last", e.exec_command().join(" "))?;
    kv::delete("old")?;
    if kv::get("old")?.is_some() {
        return Err("old is still there".into());
    }
    metric::add(&format!("commands_total{{code=\"{}\"}}", e.exit_code()), 1)?;
    metric::set("seconds", e.timeout())?;
    metric::observe("size", request()?.len() as i64)?;
    let (mut first, mut again) = ([0; 200], [0; 200]);
    random(&mut first)?;
    random(&mut again)?;
    if first == again || !logs(Level::Debug) || !has_feature(Feature::Kv) {
        return Err("no random numbers, no debug lines, or no kv".into());
    }
    log(Level::Warn, &format!("{} {} {}", now(), n / 6, Node.cgroup_version()));
    Ok(())
}

fn guard(e: &PreExec) -> Result {
    if e.pod().label("shell").as_deref() == Some("no") && e.tty() && !e.stdin() {
        return e.reject(Code::PermissionDenied, &format!("no terminals in {}", e.name()));
    }
    Ok(())
}

fn double(p: &PreUpdatePodSandboxResources) -> Result {
    p.overhead().set_memory_limit(2 * p.overhead().memory_limit())?;
    p.resources().set_cpu_quota(2 * p.resources().cpu_quota())
}
