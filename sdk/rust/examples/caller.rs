//! A plugin for tests: what becomes of a call. Refusals that are ignored, handled and passed
//! on, rejections, panics, configurations, and what is not granted.

use wasmproxy::*;

wasmproxy::plugin! {
    name: "caller",
    version: "1.2.3",
    description: "says \"everything\"\n",
    license: "Apache-2.0",
    config: i64 = |text| match text {
        "" => Ok(0),
        text => Ok(text.parse()?),
    },
    config_schema: r#"{"type": ["integer", "object"]}"#,
    state: Instance,
    limits: { fuel: 100_000, time_ms: 70, tick_host_calls: 30, tick_fuel: 200_000, tick_time_ms: 90 },
    durable: ["seen/"],
    optional: ["random"],
    needs: [Resources, Unified, Annotations],
    on PreCreateContainer(create) matching {
        namespaces: ["prod-*", "default"],
        labels: { "tier": "gold", "team": "*" },
        containers: ["!sidecar-*"],
    },
    on PostStopContainer(denied),
}

/// Does what the container's name says.
fn create(config: &i64, c: &PreCreateContainer) -> Result {
    let unified = || c.resources().set_unified("memory.high", "1");
    c.set_annotation("config", &config.to_string())?;
    match c.name().as_str() {
        "ignored" => {
            let _ = c.resources().set_cpu_quota(5);
            Ok(())
        }
        "handled" => match unified() {
            Err(e) if e.handled(Errno::Unsupported) => Ok(()),
            other => other,
        },
        "handled for another reason" => {
            assert!(!unified().unwrap_err().handled(Errno::Conflict));
            Ok(())
        }
        "one of two" => {
            assert!(unified().unwrap_err().handled(Errno::Unsupported));
            let _ = c.resources().set_unified("memory.low", "1");
            Ok(())
        }
        "passed on" => c.set_annotation("io.kubernetes.x", "").map_err(|e| e.context("mine")),
        "own words" => Err("no such tier".into()),
        "parsed" => Ok("x".parse::<i64>().map(|_| ())?),
        "rejected" => c.reject(Code::ResourceExhausted, "full"),
        "rejected and ignored" => {
            let _ = c.reject(Code::FailedPrecondition, "not now");
            Ok(())
        }
        "panic" => panic!("no way"),
        "panic of a String" => panic!("no {}", c.name()),
        "abort" => abort("cannot be"),
        _ => Ok(()),
    }
}

fn denied(_: &i64, c: &PostStopContainer) -> Result {
    assert_eq!(c.env("X").unwrap_err().errno(), Some(Errno::Denied));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PLUGIN;
    use wasmproxy::test::{run, run_files};

    #[test]
    fn fixtures() {
        run_files(&PLUGIN, "examples/testdata/caller.json");
    }

    /// The engine calls no hook that the manifest does not name.
    #[test]
    fn a_hook_without_a_handler_fails() {
        run(&PLUGIN, r#"{"hook": "Tick", "want": {"error": "the plugin has no handler of this hook"}}"#);
    }

    #[test]
    fn the_manifest() {
        let want = concat!(
            r#"{"name":"caller","version":"1.2.3","description":"says \"everything\"\u000a","license":"Apache-2.0","#,
            r#""sdk":"rust 0.1.0","hooks":[{"hook":"PreCreateContainer","match":{ "namespaces":["prod-*","default"],"#,
            r#""containers":["!sidecar-*"],"labels":{"tier":"gold","team":"*"}}},"PostStopContainer"],"#,
            r#""capabilities":["resources","unified","annotations"],"limits":{ "fuel":100000,"time_ms":70,"tick_host_calls":30,"tick_fuel":200000,"tick_time_ms":90},"#,
            r#""state":"instance","durable":["seen/"],"optional":["random"],"config_schema":{"type": ["integer", "object"]}}"#,
        );
        assert_eq!(PLUGIN.manifest(), want);
    }

    /// A fixture that is wrong is no test that passes.
    #[test]
    fn wrong_fixtures() {
        for case in [
            r#"{"hook": "PreCreate"}"#,
            r#"{"hook": "PreCreateContainer", "pods": {}}"#,
            r#"{"hook": "PreCreateContainer", "pod": {"nam": "x"}}"#,
            r#"{"hook": "PreCreateContainer", "pod": {"name": 1}}"#,
            r#"{"hook": "PreCreateContainer", "container": {"mounts": [{"x": ""}]}}"#,
            r#"{"hook": "PreCreateContainer", "cgroup": "v3"}"#,
            r#"{"hook": "PreCreateContainer", "container": {}, "want": {"changes": {}}}"#,
            r#"{"hook": "PreCreateContainer", "container": {"name": "own words"}, "want": {"eror": "no such tier"}}"#,
            r#"{"hook": "PostStopContainer", "want": {"log": ["info: nothing"], "errors": ""}}"#,
            r#"{"hook": "PreCreateContainer", "container": {}, "want": {"reject": {"code": 9, "reason": ""}}}"#,
            "{",
        ] {
            let failed = std::panic::catch_unwind(|| run(&PLUGIN, case)).is_err();
            assert!(failed, "{case} passed");
        }
    }
}
