//! What the host functions answer, and what becomes of what they are told.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::answer::Reject;
use super::case::target;
use super::object::{Data, Object, info};
use super::{DELETED, WITHDRAWN, answer, check};
use crate::Errno::{self, *};
use crate::abi::{HOOKS, RECORDS, Type, field, object};
use crate::error::Result;
use super::value::Value;
use crate::{Capability, Hook, codec};

/// The most that one call of `cgroup_read` returns, in bytes.
const MAX_READ: usize = 1 << 20;

/// What an operator grants who says nothing.
pub const GRANTED: [&str; 7] =
    ["store.read", "resources", "unified", "annotations", "labels", "cgroup.write", "metric"];

/// Ends a call.
pub struct Abort(pub String);

/// One call of a plugin, and what comes of it.
#[derive(Default)]
pub struct Host {
    pub hook: Option<Hook>, // None before the first event
    pub time: i64,
    pub objects: BTreeMap<i32, Object>,
    pub capabilities: Vec<String>,
    pub cgroup: Option<i64>,
    pub files: BTreeMap<(String, String), String>,
    pub request: Option<Vec<u8>>,
    pub config: String,

    pub earlier: BTreeMap<String, String>, // what a plugin has asked for that was asked before
    pub changes: BTreeMap<String, String>,
    pub held: BTreeSet<String>, // what it has set in earlier events and holds, by targets with ids
    pub holds: BTreeSet<String>, // likewise after this one
    pub conflict: bool,         // it was refused something because of earlier
    pub reject: Option<Reject>,
    pub failure: Option<String>,
    pub log: Vec<String>,
    pub metrics: BTreeMap<String, i64>,
    pub kv: BTreeMap<String, String>,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

pub fn set(host: Host) {
    HOST.set(host);
}

pub fn take() -> Host {
    HOST.take()
}

pub fn with<T>(f: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(f)
}

/// What a host function answers.
pub type Answer<T> = std::result::Result<T, Errno>;

impl Host {
    /// The same plugin before the first event: only its configuration is there.
    pub fn before_events(self) -> Host {
        Host { capabilities: self.capabilities, config: self.config, cgroup: self.cgroup, ..Host::default() }
    }

    pub fn reason(&self) -> String {
        self.failure.clone().unwrap_or_else(|| "no reason was given".into())
    }

    /// Puts a pod and its containers where they can be found, if they have ids.
    pub fn store(
        &mut self,
        id: &str,
        pod: Option<&Value>,
        own: bool, // the first container is the event's
        containers: &[&Value],
    ) -> Result<(Object, Vec<Object>)> {
        let mut pod = Object::read(object::POD, pod)?;
        pod.complete_pod(id);
        let mut all = Vec::new();
        for (i, fields) in containers.iter().enumerate() {
            let mut c = Object::read(object::CONTAINER, Some(fields))?;
            let number = i + usize::from(!own);
            let id = if number == 0 { "container".into() } else { format!("{}-container-{number}", pod.id()) };
            c.complete(field::CONTAINER_ID, Data::Text(id));
            c.complete(field::CONTAINER_POD_SANDBOX_ID, Data::Text(pod.id().into()));
            if !c.id().is_empty() {
                pod.containers.push(self.handle(c.clone()));
            }
            all.push(c);
        }
        pod.containers.sort_by_key(|h| self.objects[h].id().to_string());
        if !pod.id().is_empty() {
            self.handle(pod.clone());
        }
        Ok((pod, all))
    }

    fn handle(&mut self, o: Object) -> i32 {
        let next = self.objects.keys().next_back().map_or(0, |last| last + 1).max(object::FIRST_HANDLE);
        self.objects.insert(next, o);
        next
    }

    pub fn need(&self, c: Capability) -> Answer<()> {
        if self.capabilities.iter().any(|has| has == c.name()) { Ok(()) } else { Err(Denied) }
    }

    pub fn get(&self, o: i32, f: i32) -> Answer<Data> {
        let object = self.objects.get(&o).ok_or(NotFound)?;
        let row = info(object.kind, f).ok_or(NotFound)?;
        if let Some(c) = row.reading {
            self.need(c)?;
        }
        object.get(f).ok_or(NotFound)
    }

    fn kind(&self, o: i32) -> Answer<i32> {
        if o < object::FIRST_HANDLE { Ok(o) } else { self.objects.get(&o).map(|x| x.kind).ok_or(NotFound) }
    }

    /// Whether an object may be written to in this hook: its own in `hooks`, a handle as
    /// `handles` says, unless it stands for what the call is about and is still to come.
    fn writable(&self, o: i32, hooks: u64, handles: bool) -> Answer<()> {
        let hook = self.hook.ok_or(ReadOnly)?;
        if o < object::FIRST_HANDLE {
            return if hooks >> hook as i32 & 1 == 1 { Ok(()) } else { Err(ReadOnly) };
        }
        let phase = HOOKS[hook as usize - 1].phase;
        let own = [object::POD, object::CONTAINER].iter().filter_map(|own| self.objects.get(own));
        let is_own = own.into_iter().any(|own| self.objects[&o].kind == own.kind && self.objects[&o].id() == own.id());
        use crate::abi::Phase::*;
        match phase {
            BeforeNoReject => Err(ReadOnly),
            Before if is_own => Err(ReadOnly),
            _ if handles => Ok(()),
            _ => Err(ReadOnly),
        }
    }

    /// Checks a change of a field, and returns the start of its target.
    fn change(&self, o: i32, f: i32, kind: Type) -> Answer<String> {
        let of = self.kind(o)?;
        let row = info(of, f).ok_or(NotFound)?;
        if row.kind != kind {
            return Err(Invalid);
        }
        if let Some(c) = row.writing {
            self.need(c)?;
        }
        let id = (o >= object::FIRST_HANDLE).then(|| self.objects[&o].id());
        if id.is_some() {
            self.need(Capability::UpdateOthers)?;
        }
        self.writable(o, row.writable, row.handle)?;
        Ok(target(of, id, &format!(".{}", row.name)))
    }

    /// Takes a change of an object down, unless an earlier plugin wants another value.
    fn note(&mut self, o: i32, target: String, value: String) -> Answer<()> {
        if self.earlier.get(&target).is_some_and(|other| *other != value) {
            self.conflict = true;
            return Err(Conflict);
        }
        self.holds.extend(self.held_as(o, &target));
        self.changes.insert(target, value);
        Ok(())
    }

    /// The name of a target that outlives a call.
    fn held_as(&self, o: i32, of: &str) -> Option<String> {
        let object = self.objects.get(&o)?;
        let rest = of.find(" cgroup file ").or_else(|| of.find(".resources."))?;
        Some(target(object.kind, Some(object.id()), &of[rest..]))
    }

    pub fn withdraw(&mut self, o: i32, f: i32, key: &str) -> Answer<()> {
        let target = if f == 0 {
            self.change_file(o, key)?
        } else {
            let row = info(self.kind(o)?, f).ok_or(NotFound)?;
            let keyed = matches!(row.kind, Type::Map | Type::Set);
            if keyed == key.is_empty() {
                return Err(Invalid);
            }
            let target = self.change(o, f, row.kind)?;
            if keyed { format!("{target}[{}]", answer::quoted(key)) } else { target }
        };
        self.changes.remove(&target);
        let Some(held) = self.held_as(o, &target) else { return Ok(()) };
        self.holds.remove(&held);
        if self.held.contains(&held) {
            self.changes.insert(target, WITHDRAWN.into());
        }
        Ok(())
    }

    pub fn set(&mut self, o: i32, f: i32, kind: Type, value: String) -> Answer<()> {
        let target = self.change(o, f, kind)?;
        check::value(self.kind(o)?, f, &value)?;
        check::limit(self, o, f, &value)?;
        self.note(o, target, value)
    }

    pub fn set_entry(&mut self, o: i32, f: i32, kind: Type, key: &str, value: Option<String>) -> Answer<()> {
        let target = self.change(o, f, kind)?;
        if value.is_none() && o >= object::FIRST_HANDLE {
            return Err(Unsupported); // an update of another container adds to what it has
        }
        check::key(self, self.kind(o)?, f, key)?;
        let target = format!("{target}[{}]", answer::quoted(key));
        self.note(o, target, value.unwrap_or_else(|| DELETED.into()))
    }

    pub fn add_element(&mut self, o: i32, f: i32, element: &[u8]) -> Answer<()> {
        let of = self.kind(o)?;
        let Some(record) = RECORDS.iter().find(|r| r.object == of && r.field == f) else {
            let key = codec::text(element);
            return self.set_entry(o, f, Type::Set, &key, Some("true".into()));
        };
        let values: BTreeMap<_, _> = codec::entries(element).map(|(k, v)| (codec::text(k), codec::text(v))).collect();
        if values.keys().any(|k| !record.keys.contains(&k.as_str())) {
            return Err(Invalid);
        }
        let key = values.get(record.keys[0]).cloned().unwrap_or_default();
        if !key.starts_with('/') {
            return Err(Invalid);
        }
        let members = values.into_iter().map(|(k, v)| (k, Value::String(v))).collect();
        self.set_entry(o, f, Type::Set, &key, Some(answer::text(&Value::Object(members))))
    }

    /// Checks a change of a cgroup file, and returns its target.
    fn change_file(&self, o: i32, file: &str) -> Answer<String> {
        let of = self.kind(o)?;
        self.need(Capability::CgroupWrite)?;
        let id = (o >= object::FIRST_HANDLE).then(|| self.objects[&o].id().to_string());
        if id.is_some() {
            self.need(Capability::UpdateOthers)?;
        }
        let hooks = check::cgroup_hooks(of);
        self.writable(o, hooks, true)?;
        Ok(target(of, id.as_deref(), &format!(" cgroup file {file}")))
    }

    pub fn set_file(&mut self, o: i32, file: &str, value: &str) -> Answer<()> {
        let target = self.change_file(o, file)?;
        if self.cgroup.is_none() {
            return Err(Unsupported);
        }
        check::file(self.kind(o)?, file, check::CGROUP_SET)?;
        self.note(o, target, value.into())
    }

    pub fn file(&self, o: i32, file: &str) -> Answer<String> {
        self.need(Capability::CgroupRead)?;
        if o >= object::QOS_CLASS {
            let pod = self.objects.get(&(o - object::QOS_CLASS)).filter(|o| o.kind == object::POD).ok_or(NotFound)?;
            let class = pod.text(field::POD_QOS).to_string();
            return self.files.get(&(class, file.to_string())).cloned().ok_or(NotFound);
        }
        let id = self.objects.get(&o).ok_or(NotFound)?.id().to_string();
        let names = [["event", "pod", "container", "node"].get(o as usize).map_or(id.clone(), |n| n.to_string()), id];
        let found = names.iter().find_map(|n| self.files.get(&(n.clone(), file.to_string())));
        found.cloned().ok_or(NotFound)
    }

    /// A file of the cgroup of the event's own pod; empty if the case does not give it.
    pub fn pod_file(&self, file: &str) -> String {
        let id = self.objects.get(&object::POD).map_or("", |pod| pod.id());
        let found = ["pod", id].iter().find_map(|name| self.files.get(&(name.to_string(), file.to_string())));
        found.cloned().unwrap_or_default()
    }

    pub fn read_files(&self, objects: &[u8], files: &[u8]) -> Answer<Vec<u8>> {
        self.need(Capability::CgroupRead)?;
        let files: Vec<_> = codec::elements(files).map(codec::text).collect();
        let objects = objects.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b));
        let read: Vec<_> = objects.flat_map(|o| files.iter().map(move |file| self.file(o, file))).collect();
        if read.is_empty() {
            return Err(Invalid);
        }
        let mut out = Vec::new();
        codec::put_number(&mut out, read.len());
        for file in read {
            let (key, text) = file.map_or_else(|e| ((e as i32).to_string(), String::new()), |v| (String::new(), v));
            codec::put(&mut out, key.as_bytes());
            codec::put(&mut out, text.as_bytes());
        }
        if out.len() > MAX_READ {
            return Err(TooLarge);
        }
        Ok(out)
    }

    pub fn find(&self, kind: i32, name: &str) -> Answer<i32> {
        self.need(Capability::StoreRead)?;
        let is = |o: &Object| match kind {
            0 => o.kind == object::POD && o.id() == name,
            1 => o.kind == object::POD && o.text(field::POD_UID) == name,
            2 => {
                o.kind == object::POD && format!("{}/{}", o.text(field::POD_NAMESPACE), o.text(field::POD_NAME)) == name
            }
            3 => o.kind == object::CONTAINER && o.id() == name,
            _ => false,
        };
        let mut handles = self.objects.range(object::FIRST_HANDLE..);
        handles.find(|(_, o)| is(o)).map(|(h, _)| *h).ok_or(NotFound)
    }

    pub fn pods(&self, namespace: &str) -> Answer<Vec<i32>> {
        self.need(Capability::StoreRead)?;
        let here = |o: &Object| namespace.is_empty() || o.text(field::POD_NAMESPACE) == namespace;
        let handles = self.objects.range(object::FIRST_HANDLE..);
        let mut pods: Vec<_> = handles.filter(|(_, o)| o.kind == object::POD && here(o)).collect();
        pods.sort_by_key(|(_, o)| o.id());
        Ok(pods.into_iter().map(|(h, _)| *h).collect())
    }

    pub fn containers(&self, pod: i32) -> Answer<Vec<i32>> {
        self.need(Capability::StoreRead)?;
        if pod == object::NODE {
            let handles = self.objects.range(object::FIRST_HANDLE..);
            let pods = handles.filter(|(_, o)| o.kind == object::POD);
            let mut pods: Vec<_> = pods.map(|(_, o)| o).collect();
            pods.sort_by_key(|o| o.id());
            return Ok(pods.into_iter().flat_map(|o| o.containers.clone()).collect());
        }
        let pod = self.objects.get(&pod).filter(|o| o.kind == object::POD).ok_or(NotFound)?;
        Ok(pod.containers.clone())
    }
}
