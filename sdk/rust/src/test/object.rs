use std::collections::BTreeMap;

use crate::abi::{FIELDS, FieldInfo, RECORDS, Type, field, object};
use crate::codec;
use crate::error::Result;
use super::value::Value;

/// The id of an image of which the fixture says the name alone.
const IMAGE_ID: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The value of a field.
#[derive(Clone, Debug)]
pub enum Data {
    Number(i64),
    Text(String),
    Map(BTreeMap<String, String>),
    List(Vec<Vec<u8>>), // and sets
}

/// A pod, a container, the node or the event.
#[derive(Clone, Debug)]
pub struct Object {
    pub kind: i32,
    pub fields: BTreeMap<i32, Data>,
    pub containers: Vec<i32>, // of a pod, as handles
}

/// Finds a field by its object and number.
pub fn info(kind: i32, field: i32) -> Option<&'static FieldInfo> {
    FIELDS.iter().find(|i| i.object == kind && i.field == field)
}

pub fn kind_name(kind: i32) -> &'static str {
    ["event", "pod", "container", "node"].get(kind as usize).copied().unwrap_or("handle")
}

impl Object {
    /// Reads the fields of a fixture.
    pub fn read(kind: i32, fields: Option<&Value>) -> Result<Object> {
        let mut o = Object { kind, fields: BTreeMap::new(), containers: Vec::new() };
        for (name, value) in fields.map_or(&[][..], Value::members) {
            let Some(info) = FIELDS.iter().find(|i| i.object == kind && i.name == *name) else {
                return Err(format!("{} has no field {name:?}", kind_name(kind)).into());
            };
            let data = data(info, value);
            let data = data.ok_or_else(|| format!("{}.{name}: not of the field's type", kind_name(kind)))?;
            o.fields.insert(info.field, data);
        }
        if kind == object::CONTAINER && !o.text(field::CONTAINER_IMAGE).is_empty() {
            // kubelet asks for an image by its id
            o.complete(field::CONTAINER_IMAGE_ID, Data::Text(IMAGE_ID.into()));
        }
        Ok(o)
    }

    /// Reads the fields of the node; it has those of one with containerd besides.
    pub fn node(fields: Option<&Value>, cgroup: Option<i64>) -> Result<Object> {
        let mut o = Object::read(object::NODE, fields)?;
        let text = |s: &str| Data::Text(s.into());
        o.complete(field::NODE_CGROUP_VERSION, Data::Number(cgroup.unwrap_or(0)));
        o.complete(field::NODE_CGROUP_DRIVER, text("cgroupfs"));
        o.complete(field::NODE_RUNTIME_NAME, text("containerd"));
        o.complete(field::NODE_RUNTIME_VERSION, text("v2.2.0"));
        o.complete(field::NODE_RUNTIME_HANDLERS, Data::List(vec![b"".into(), b"runc".into()]));
        o.complete(field::NODE_CPUS, Data::Number(4));
        o.complete(field::NODE_MEMORY, Data::Number(16 << 30));
        o.complete(field::NODE_KERNEL, text("6.12.0"));
        Ok(o)
    }

    /// Adds what the fixture leaves out of a pod: its id, and the cgroup in which kubelet would put a pod of its class.
    pub fn complete_pod(&mut self, id: &str) {
        self.complete(field::POD_ID, Data::Text(id.into()));
        let parent = match self.text(field::POD_QOS) {
            "Burstable" => "/kubepods/burstable/",
            "BestEffort" => "/kubepods/besteffort/",
            "Guaranteed" => "/kubepods/",
            _ => "/pods/",
        };
        self.complete(field::POD_CGROUP_PARENT, Data::Text(format!("{parent}{}", self.id())));
    }

    /// Adds a field that the fixture leaves out.
    pub fn complete(&mut self, f: i32, data: Data) {
        self.fields.entry(f).or_insert(data);
    }

    /// The value of a field, which is 0 or empty if the fixture leaves it out. The event's
    /// are those of its call, and who a container runs as may be left open.
    pub fn get(&self, f: i32) -> Option<Data> {
        if let Some(data) = self.fields.get(&f) {
            return Some(data.clone());
        }
        let open = [field::CONTAINER_RUN_AS_USER, field::CONTAINER_RUN_AS_GROUP];
        if self.kind == object::EVENT || self.kind == object::CONTAINER && open.contains(&f) {
            return None;
        }
        Some(match info(self.kind, f)?.kind {
            Type::Int64 => Data::Number(0),
            Type::String => Data::Text(String::new()),
            Type::Map => Data::Map(BTreeMap::new()),
            Type::List | Type::Set => Data::List(Vec::new()),
        })
    }

    pub fn text(&self, f: i32) -> &str {
        match self.fields.get(&f) {
            Some(Data::Text(s)) => s,
            _ => "",
        }
    }

    /// The id of a pod or container.
    pub fn id(&self) -> &str {
        self.text(field::POD_ID) // as CONTAINER_ID
    }
}

impl Data {
    /// As it crosses the border.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Data::Number(n) => n.to_le_bytes().into(),
            Data::Text(s) => s.as_bytes().into(),
            Data::List(elements) => codec::list(elements),
            Data::Map(map) => {
                let mut out = Vec::new();
                codec::put_number(&mut out, map.len());
                for (k, v) in map {
                    codec::put(&mut out, k.as_bytes());
                    codec::put(&mut out, v.as_bytes());
                }
                out
            }
        }
    }
}

fn data(info: &FieldInfo, value: &Value) -> Option<Data> {
    Some(match (info.kind, value) {
        (Type::Int64, v) => Data::Number(v.as_i64()?),
        (Type::String, v) => Data::Text(v.as_str()?.into()),
        (Type::Map, Value::Object(_)) => Data::Map(strings(value)?),
        (Type::List | Type::Set, Value::Array(elements)) => {
            let keys = RECORDS.iter().find(|r| r.object == info.object && r.field == info.field).map(|r| r.keys);
            Data::List(elements.iter().map(|e| element(keys, e)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn strings(value: &Value) -> Option<BTreeMap<String, String>> {
    value.members().iter().map(|(k, v)| Some((k.clone(), v.as_str()?.into()))).collect()
}

/// An element of a list or set, where `keys` are those of its record.
fn element(keys: Option<&[&str]>, value: &Value) -> Option<Vec<u8>> {
    let Some(keys) = keys else { return Some(value.as_str()?.into()) };
    let values = strings(value).filter(|v| v.keys().all(|k| keys.contains(&k.as_str())))?;
    let entries: Vec<_> = keys.iter().map(|k| (*k, values.get(*k).map_or("", String::as_str))).collect();
    Some(codec::record(&entries))
}
