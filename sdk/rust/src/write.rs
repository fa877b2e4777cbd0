//! Changing what the host allows.

use crate::error::{Result, done};
use crate::{codec, host};

pub fn number(op: &str, object: i32, field: i32, value: i64) -> Result {
    done(op, "", host::set_i64(object, field, value))
}

pub fn text(op: &str, object: i32, field: i32, value: &str) -> Result {
    done(op, "", host::set_bytes(object, field, value))
}

pub fn entry(op: &str, object: i32, field: i32, key: &str, value: impl AsRef<[u8]>) -> Result {
    done(op, key, host::map_set(object, field, key, value.as_ref()))
}

pub fn delete_entry(op: &str, object: i32, field: i32, key: &str) -> Result {
    done(op, key, host::map_del(object, field, key))
}

pub fn list(op: &str, object: i32, field: i32, list: &[impl AsRef<str>]) -> Result {
    let list: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
    done(op, "", host::list_set(object, field, &codec::list(&list)))
}

pub fn element(op: &str, object: i32, field: i32, key: &str, element: &[u8]) -> Result {
    done(op, key, host::list_add(object, field, element))
}

pub fn delete_element(op: &str, object: i32, field: i32, key: &str) -> Result {
    done(op, key, host::list_del(object, field, key))
}

pub fn withdraw(op: &str, object: i32, field: i32, key: &str) -> Result {
    done(op, key, host::withdraw(object, field, key))
}

pub fn cgroup(object: i32, file: &str, value: &str) -> Result {
    done("set_cgroup", file, host::cgroup_set(object, file, value))
}
