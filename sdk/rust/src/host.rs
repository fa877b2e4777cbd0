//! The host functions with slices for pointers. In a guest they are imports; on the
//! machine that runs tests they are those of [`crate::test`].

#[cfg(target_arch = "wasm32")]
use crate::abi::host as raw;
#[cfg(not(target_arch = "wasm32"))]
use crate::test::import as raw;

/// What a host function that fills a buffer is called with: where, and how much room.
pub type Buffer = (*mut u8, u32);

// SAFETY of all calls below: a slice's pointer and length are valid for the call, and
// the host keeps neither. A Buffer comes from `read::fill`, which owns it.

pub fn get(object: i32, field: i32, (buf, cap): Buffer) -> i32 {
    unsafe { raw::get(object, field, buf, cap) }
}

/// Returns the number, or the host's error.
pub fn get_i64(object: i32, field: i32) -> Result<i64, i32> {
    let mut out = [0; 8];
    match unsafe { raw::get_i64(object, field, out.as_mut_ptr()) } {
        n if n < 0 => Err(n),
        _ => Ok(i64::from_le_bytes(out)),
    }
}

pub fn map_get(object: i32, field: i32, key: &str, (buf, cap): Buffer) -> i32 {
    unsafe { raw::map_get(object, field, key.as_ptr(), len(key), buf, cap) }
}

pub fn map_dump(object: i32, field: i32, (buf, cap): Buffer) -> i32 {
    unsafe { raw::map_dump(object, field, buf, cap) }
}

pub fn list_dump(object: i32, field: i32, (buf, cap): Buffer) -> i32 {
    unsafe { raw::list_dump(object, field, buf, cap) }
}

pub fn cri_raw((buf, cap): Buffer) -> i32 {
    unsafe { raw::cri_raw(buf, cap) }
}

pub fn cgroup_get(object: i32, file: &str, (buf, cap): Buffer) -> i32 {
    unsafe { raw::cgroup_get(object, file.as_ptr(), len(file), buf, cap) }
}

pub fn cgroup_read(objects: &[u8], files: &[u8], (buf, cap): Buffer) -> i32 {
    unsafe {
        raw::cgroup_read(objects.as_ptr(), objects.len() as u32, files.as_ptr(), files.len() as u32, buf, cap)
    }
}

pub fn pod_find(kind: i32, name: &str) -> i32 {
    unsafe { raw::pod_find(kind, name.as_ptr(), len(name)) }
}

pub fn pod_list(namespace: &str, (buf, cap): Buffer) -> i32 {
    unsafe { raw::pod_list(namespace.as_ptr(), len(namespace), buf, cap) }
}

pub fn container_list(pod: i32, (buf, cap): Buffer) -> i32 {
    unsafe { raw::container_list(pod, buf, cap) }
}

pub fn set_i64(object: i32, field: i32, value: i64) -> i32 {
    unsafe { raw::set_i64(object, field, value) }
}

pub fn set_bytes(object: i32, field: i32, value: &str) -> i32 {
    unsafe { raw::set_bytes(object, field, value.as_ptr(), len(value)) }
}

pub fn map_set(object: i32, field: i32, key: &str, value: &[u8]) -> i32 {
    unsafe { raw::map_set(object, field, key.as_ptr(), len(key), value.as_ptr(), value.len() as u32) }
}

pub fn map_del(object: i32, field: i32, key: &str) -> i32 {
    unsafe { raw::map_del(object, field, key.as_ptr(), len(key)) }
}

pub fn list_set(object: i32, field: i32, list: &[u8]) -> i32 {
    unsafe { raw::list_set(object, field, list.as_ptr(), list.len() as u32) }
}

pub fn list_add(object: i32, field: i32, element: &[u8]) -> i32 {
    unsafe { raw::list_add(object, field, element.as_ptr(), element.len() as u32) }
}

pub fn list_del(object: i32, field: i32, key: &str) -> i32 {
    unsafe { raw::list_del(object, field, key.as_ptr(), len(key)) }
}

pub fn cgroup_set(object: i32, file: &str, value: &str) -> i32 {
    unsafe { raw::cgroup_set(object, file.as_ptr(), len(file), value.as_ptr(), len(value)) }
}

pub fn withdraw(object: i32, field: i32, key: &str) -> i32 {
    unsafe { raw::withdraw(object, field, key.as_ptr(), len(key)) }
}

pub fn conflict((buf, cap): Buffer) -> i32 {
    unsafe { raw::conflict(buf, cap) }
}

pub fn reject(code: i32, reason: &str) -> i32 {
    unsafe { raw::reject(code, reason.as_ptr(), len(reason)) }
}

pub fn fail(reason: &str) {
    unsafe { raw::fail(reason.as_ptr(), len(reason)) }
}

pub fn abort(reason: &str) {
    unsafe { raw::abort(reason.as_ptr(), len(reason)) }
}

pub fn config((buf, cap): Buffer) -> i32 {
    unsafe { raw::config(buf, cap) }
}

pub fn log(level: i32, text: &str) {
    unsafe { raw::log(level, text.as_ptr(), len(text)) }
}

pub fn log_level() -> i32 {
    unsafe { raw::log_level() }
}

pub fn metric(kind: i32, name: &str, value: i64) -> i32 {
    unsafe { raw::metric(kind, name.as_ptr(), len(name), value) }
}

pub fn kv_get(key: &str, (buf, cap): Buffer) -> i32 {
    unsafe { raw::kv_get(key.as_ptr(), len(key), buf, cap) }
}

pub fn kv_set(key: &str, value: &[u8]) -> i32 {
    unsafe { raw::kv_set(key.as_ptr(), len(key), value.as_ptr(), value.len() as u32) }
}

pub fn kv_del(key: &str) -> i32 {
    unsafe { raw::kv_del(key.as_ptr(), len(key)) }
}

pub fn now() -> i64 {
    unsafe { raw::now() }
}

pub fn random(bytes: &mut [u8]) -> i32 {
    unsafe { raw::random(bytes.as_mut_ptr(), bytes.len() as u32) }
}

pub fn feature(feature: i32) -> i32 {
    unsafe { raw::feature(feature) }
}

fn len(text: &str) -> u32 {
    text.len() as u32
}
