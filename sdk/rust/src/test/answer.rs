use std::collections::BTreeMap;

use super::value::Value;
use super::{DELETED, WITHDRAWN};

/// What came of a case.
#[derive(Debug, Default)]
pub struct Answer {
    /// What the plugin asks for, by target, such as `container.resources.cpu_quota`. It is
    /// empty if the call failed or was refused.
    pub changes: BTreeMap<String, String>,
    /// The refusal of the call.
    pub reject: Option<Reject>,
    /// Why the plugin failed.
    pub error: Option<String>,
    /// The lines of the log, each as `warn: text`.
    pub log: Vec<String>,
    /// The series that were counted or measured.
    pub metrics: BTreeMap<String, i64>,
    /// What is kept afterwards.
    pub kv: BTreeMap<String, String>,
}

/// A refusal of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The gRPC code.
    pub code: i64,
    /// The reason.
    pub reason: String,
}

/// Tells how an answer differs from what is wanted.
pub(super) fn compare(answer: &Answer, want: Option<&Value>) -> Vec<String> {
    let mut all = Vec::new();
    let wanted = want.and_then(|w| w.get("error")).and_then(Value::as_str);
    match (wanted, &answer.error) {
        (None, Some(got)) => all.push(format!("failed: {got}")),
        (Some(want), None) => all.push(format!("did not fail, want: {want}")),
        (Some(want), Some(got)) if !got.contains(want) => all.push(format!("failed with {got:?}, want {want:?} in it")),
        _ => {}
    }
    let Some(want) = want else { return all };
    let reject = want.get("reject").map(|r| Reject {
        code: r.get("code").and_then(Value::as_i64).unwrap_or(0),
        reason: r.get("reason").and_then(Value::as_str).unwrap_or("").into(),
    });
    if reject != answer.reject {
        all.push(format!("refused the call: {:?}, want {reject:?}", answer.reject));
    }
    all.extend(compare_maps("change", &answer.changes, &texts(want.get("changes"))));
    if let Some(log) = want.get("log") {
        let log: Vec<_> = log.elements().iter().filter_map(Value::as_str).collect();
        if log != answer.log {
            all.push(format!("logged {:?}, want {log:?}", answer.log));
        }
    }
    if let Some(metrics) = want.get("metrics") {
        let got = answer.metrics.iter().map(|(k, v)| (k.clone(), v.to_string())).collect();
        all.extend(compare_maps("metric", &got, &texts(Some(metrics))));
    }
    if let Some(kv) = want.get("kv") {
        all.extend(compare_maps("kept value", &answer.kv, &texts(Some(kv))));
    }
    all
}

fn compare_maps(what: &str, got: &BTreeMap<String, String>, want: &BTreeMap<String, String>) -> Vec<String> {
    let mut all = Vec::new();
    for (k, v) in want {
        match got.get(k) {
            None => all.push(format!("no {what} {k}, want {v:?}")),
            Some(g) if g != v => all.push(format!("{what} {k} is {g:?}, want {v:?}")),
            _ => {}
        }
    }
    let extra = got.iter().filter(|(k, _)| !want.contains_key(*k));
    all.extend(extra.map(|(k, v)| format!("{what} {k} is {v:?}, want none")));
    all
}

/// Members by their names, each in its one form.
pub(super) fn texts(members: Option<&Value>) -> BTreeMap<String, String> {
    members.map_or(&[][..], Value::members).iter().map(|(k, v)| (k.clone(), text(v))).collect()
}

/// The one form of a value: numbers and strings as they are, the others in JSON without
/// space, with the members of objects in order.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => DELETED.into(),
        Value::Bool(false) => WITHDRAWN.into(),
        Value::String(s) => s.clone(),
        other => json(other),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.clone(),
        Value::String(s) => quoted(s),
        Value::Array(elements) => format!("[{}]", elements.iter().map(json).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(k, v)| (k, v)).collect();
            let members: Vec<_> = members.iter().map(|(k, v)| format!("{}:{}", quoted(k), json(v))).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// A JSON string.
pub(super) fn quoted(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}
