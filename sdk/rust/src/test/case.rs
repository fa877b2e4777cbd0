use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::answer::{self, Answer};
use super::host::{self, Abort, Host};
use super::object::{Data, Object, kind_name};
use crate::abi::{HOOKS, field, object};
use crate::error::Result;
use super::value::Value;
use crate::{Hook, Plugin};

/// A case as it is written down.
#[derive(Clone)]
pub struct Case {
    value: Value,
    hook: Hook,
    previous: Option<Box<Case>>, // what the same plugin is told before
}

const KEYS: [&str; 17] = [
    "name", "hook", "continues", "time", "event", "pod", "container", "node", "siblings", "store", "cgroup",
    "cgroup_files", "request", "config", "grant", "kv", "earlier",
];

/// What says how the plugin is loaded, which a case that continues cannot change.
const OF_PLUGIN: [&str; 5] = ["config", "grant", "node", "cgroup", "kv"];

const WANTED: [&str; 7] = ["changes", "reject", "error", "log", "metrics", "kv", "max_fuel"];

impl Case {
    /// Reads a case. One that continues has what it leaves out from the one before.
    pub fn read(name: &str, value: &Value, before: Option<&Case>) -> Result<Case> {
        let wanted = value.get("want").map_or(&[][..], Value::members).iter().map(|(k, _)| k);
        let unknown = value.members().iter().map(|(k, _)| k).filter(|k| *k != "want" && !KEYS.contains(&k.as_str()));
        if let Some(key) = unknown.chain(wanted.filter(|k| !WANTED.contains(&k.as_str()))).next() {
            return Err(format!("{name}: there is no key {key:?}").into());
        }
        let (value, previous) = match (value.get("continues").and_then(Value::as_bool), before) {
            (Some(true), None) => return Err(format!("{name}: continues: there is no case before this one").into()),
            (Some(true), Some(before)) => (inherit(name, value, &before.value)?, Some(Box::new(before.clone()))),
            _ => (value.clone(), None),
        };
        let hook = value.get("hook").and_then(Value::as_str).unwrap_or("");
        let found = HOOKS.iter().find(|h| h.name == hook);
        let found = found.ok_or_else(|| format!("{name}: there is no hook {hook:?}"))?;
        Ok(Case { value, hook: found.hook, previous })
    }

    fn string(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or("")
    }

    fn host(&self, plugin: &Plugin) -> Result<Host> {
        let mut h = Host {
            hook: Some(self.hook),
            time: self.value.get("time").and_then(Value::as_i64).unwrap_or(0),
            capabilities: capabilities(plugin, self.value.get("grant"))?,
            cgroup: match self.string("cgroup") {
                "" => self.cgroup_version(),
                "v1" => Some(1),
                "v2" => Some(2),
                other => return Err(format!("cgroup: {other:?} is neither v1 nor v2").into()),
            },
            request: self.value.get("request").and_then(Value::as_str).map(base64).transpose()?,
            config: self.value.get("config").filter(|c| **c != Value::Null).map(compact).unwrap_or_default(),
            earlier: answer::texts(self.value.get("earlier")),
            ..Host::default()
        };
        for (k, v) in self.value.get("kv").map_or(&[][..], Value::members) {
            h.kv.insert(k.clone(), v.as_str().unwrap_or("").into());
        }
        self.objects(&mut h)?;
        self.files(&mut h);
        Ok(h)
    }

    /// The version of cgroups of a case that does not say it by itself.
    fn cgroup_version(&self) -> Option<i64> {
        let node = self.value.get("node").and_then(|n| n.get("cgroup_version")).and_then(Value::as_i64);
        let files = self.value.get("cgroup_files").is_some_and(|f| !f.members().is_empty());
        node.filter(|v| [1, 2].contains(v)).or(files.then_some(2))
    }

    fn objects(&self, h: &mut Host) -> Result {
        let info = HOOKS.iter().find(|i| i.hook == self.hook).ok_or("there is no such hook")?;
        let mut event = Object::read(object::EVENT, self.value.get("event"))?;
        event.fields.insert(field::EVENT_HOOK, Data::Number(self.hook as i64));
        event.fields.insert(field::EVENT_TIME, Data::Number(h.time));
        let method = info.name.strip_prefix("Pre").or(info.name.strip_prefix("Post"));
        event.complete(field::EVENT_METHOD, Data::Text(method.unwrap_or("").into()));
        h.objects.insert(object::EVENT, event);
        h.objects.insert(object::NODE, Object::node(self.value.get("node"), h.cgroup)?);
        let empty = Value::Object(Vec::new());
        let own = self.value.get("container").or((info.object == object::CONTAINER).then_some(&empty));
        let about = own.is_some() || info.object == object::POD;
        let siblings = self.value.get("siblings").map_or(&[][..], Value::elements);
        let containers: Vec<_> = own.into_iter().chain(siblings).collect();
        if let Some(pod) = self.value.get("pod").or(about.then_some(&empty)) {
            let (pod, containers) = h.store("pod", Some(pod), own.is_some(), &containers)?;
            h.objects.insert(object::POD, pod);
            if own.is_some() {
                h.objects.insert(object::CONTAINER, containers[0].clone());
            }
        }
        for (i, other) in self.value.get("store").map_or(&[][..], Value::elements).iter().enumerate() {
            let containers: Vec<_> = other.get("containers").map_or(&[][..], Value::elements).iter().collect();
            h.store(&format!("pod-{}", i + 1), other.get("pod"), false, &containers)?;
        }
        Ok(())
    }

    fn files(&self, h: &mut Host) {
        for (object, files) in self.value.get("cgroup_files").map_or(&[][..], Value::members) {
            for (file, text) in files.members() {
                h.files.insert((object.clone(), file.clone()), text.as_str().unwrap_or("").into());
            }
        }
    }

    /// Tells the plugin, the configuration and what comes before first. The error is the case's own.
    pub fn call(&self, plugin: &Plugin) -> Result<Answer> {
        let config = self.host(plugin)?.before_events();
        let (result, configured) = play(config, || plugin.answer_configure());
        if result != Some(0) {
            return Ok(Answer { error: Some(configured.reason()), log: configured.log, ..Answer::default() });
        }
        let mut steps = vec![self];
        while let Some(previous) = &steps[steps.len() - 1].previous {
            steps.push(previous);
        }
        let mut answer = Answer { kv: self.host(plugin)?.kv, ..Answer::default() };
        let mut held = BTreeSet::new();
        for step in steps.iter().rev() {
            answer = step.event(plugin, answer, &mut held)?;
        }
        Ok(answer)
    }

    /// Tells the plugin the case's own event, with what it has kept, counted and set before.
    fn event(&self, plugin: &Plugin, before: Answer, held: &mut BTreeSet<String>) -> Result<Answer> {
        let kv = before.kv;
        let host = Host {
            kv: kv.clone(),
            metrics: before.metrics,
            held: held.clone(),
            holds: held.clone(),
            ..self.host(plugin)?
        };
        let (result, done) = play(host, || plugin.answer_hook(self.hook as i32));
        let mut answer = Answer { log: done.log.clone(), metrics: done.metrics.clone(), kv, ..Answer::default() };
        match result {
            Some(0) => {
                answer.changes = done.changes;
                answer.kv = done.kv;
                *held = done.holds;
            }
            Some(1) if done.reject.is_some() => answer.reject = done.reject,
            _ => answer.error = Some(done.reason()),
        }
        Ok(answer)
    }

    pub fn compare(&self, got: &Answer) -> Vec<String> {
        answer::compare(got, self.value.get("want"))
    }
}

/// A case with the keys that it leaves out as the case before has them.
fn inherit(name: &str, value: &Value, before: &Value) -> Result<Value> {
    if let Some(key) = OF_PLUGIN.iter().find(|key| value.get(key).is_some()) {
        return Err(format!("{name}: {key}: a case that continues has that of the case before").into());
    }
    let own = |key: &String| value.get(key).is_some() || key == "name" || key == "want";
    let rest = before.members().iter().filter(|(key, _)| !own(key));
    Ok(Value::Object(rest.chain(value.members()).cloned().collect()))
}

/// Has the plugin called by a host. `None` is a call that ended before it returned.
fn play(host: Host, call: impl FnOnce() -> i32) -> (Option<i32>, Host) {
    host::set(host);
    let result = catch_unwind(AssertUnwindSafe(call));
    let mut host = host::take();
    let result = result.map_err(|panic| {
        let text = panic.downcast_ref::<Abort>().map(|a| a.0.clone());
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| format!("panic: {s}")));
        let text = text.or_else(|| panic.downcast_ref::<String>().map(|s| format!("panic: {s}")));
        host.failure = Some(text.unwrap_or_else(|| "panic: of no text".into()));
    });
    (result.ok(), host)
}

/// Those that the plugin declares and the case grants.
fn capabilities(plugin: &Plugin, grant: Option<&Value>) -> Result<Vec<String>> {
    let manifest = Value::parse(plugin.manifest())?;
    let declared = manifest.get("capabilities").map_or(&[][..], Value::elements).iter().filter_map(Value::as_str);
    let grant: Vec<_> = grant.map_or(&[][..], Value::elements).iter().filter_map(Value::as_str).collect();
    let granted = |name: &str| host::GRANTED.contains(&name) || grant.contains(&name) || grant.contains(&"*");
    Ok(declared.filter(|name| granted(name)).map(String::from).collect())
}

/// The configuration as the host passes it on, without the space between tokens.
fn compact(value: &Value) -> String {
    match value {
        Value::Array(elements) => format!("[{}]", elements.iter().map(compact).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(k, v)| format!("{}:{}", answer::quoted(k), compact(v))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::String(s) => answer::quoted(s),
        Value::Null => "null".into(),
        other => answer::text(other),
    }
}

fn base64(text: &str) -> Result<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for b in text.trim_end_matches('=').bytes() {
        let digit = DIGITS.iter().position(|d| *d == b).ok_or("request: not base64")?;
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Ok(out)
}

/// The target of a change, as the proxy's log writes it.
pub fn target(kind: i32, handle: Option<&str>, rest: &str) -> String {
    match handle {
        Some(id) => format!("{}({id}){rest}", kind_name(kind)),
        None => format!("{}{rest}", kind_name(kind)),
    }
}
