//! The host functions. They take what a guest's imports take, and write where they are
//! told; see abi/ABI.md.

use std::slice;

use super::answer;
use super::answer::Reject;
use super::host::{Abort, Answer, with};
use super::object::Data;
use crate::Errno::*;
use crate::abi::{HOOKS, Type};
use super::value::Value;
use crate::{Capability, codec};

// SAFETY of all below: the caller gives pointers and lengths of its own.

unsafe fn bytes<'a>(ptr: *const u8, len: u32) -> &'a [u8] {
    unsafe { slice::from_raw_parts(ptr, len as usize) }
}

unsafe fn string(ptr: *const u8, len: u32) -> String {
    codec::text(unsafe { bytes(ptr, len) })
}

unsafe fn give(answer: Answer<impl AsRef<[u8]>>, buf: *mut u8, cap: u32) -> i32 {
    match answer {
        Err(errno) => errno as i32,
        Ok(data) => {
            let data = data.as_ref();
            if data.len() <= cap as usize {
                unsafe { buf.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            }
            data.len() as i32
        }
    }
}

fn done(answer: Answer<()>) -> i32 {
    answer.map_or_else(|errno| errno as i32, |()| 0)
}

fn handles(answer: Answer<Vec<i32>>) -> Answer<Vec<u8>> {
    answer.map(|list| list.iter().flat_map(|h| h.to_le_bytes()).collect())
}

pub unsafe fn get(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32 {
    let answer = with(|h| match h.get(object, field)? {
        Data::Text(s) => Ok(s),
        _ => Err(NotFound),
    });
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn get_i64(object: i32, field: i32, out: *mut u8) -> i32 {
    match with(|h| h.get(object, field)) {
        Ok(Data::Number(n)) => unsafe { give(Ok(n.to_le_bytes()), out, 8) }.min(0),
        Ok(_) => NotFound as i32,
        Err(errno) => errno as i32,
    }
}

pub unsafe fn map_get(object: i32, field: i32, key: *const u8, key_len: u32, buf: *mut u8, cap: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    let answer = with(|h| match h.get(object, field)? {
        Data::Map(m) => m.get(&key).cloned().ok_or(NotFound),
        _ => Err(NotFound),
    });
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn map_dump(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32 {
    let answer =
        with(|h| h.get(object, field).and_then(|d| if let Data::Map(_) = d { Ok(d.encode()) } else { Err(NotFound) }));
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn list_dump(object: i32, field: i32, buf: *mut u8, cap: u32) -> i32 {
    let answer =
        with(|h| h.get(object, field).and_then(|d| if let Data::List(_) = d { Ok(d.encode()) } else { Err(NotFound) }));
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn cri_raw(buf: *mut u8, cap: u32) -> i32 {
    let answer = with(|h| h.need(Capability::CriRaw).and_then(|()| h.request.clone().ok_or(NotFound)));
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn cgroup_get(object: i32, file: *const u8, file_len: u32, buf: *mut u8, cap: u32) -> i32 {
    let file = unsafe { string(file, file_len) };
    unsafe { give(with(|h| h.file(object, &file)), buf, cap) }
}

pub unsafe fn cgroup_read(
    objects: *const u8,
    objects_len: u32,
    files: *const u8,
    files_len: u32,
    buf: *mut u8,
    cap: u32,
) -> i32 {
    let (objects, files) = unsafe { (bytes(objects, objects_len), bytes(files, files_len)) };
    unsafe { give(with(|h| h.read_files(objects, files)), buf, cap) }
}

pub unsafe fn pod_find(kind: i32, name: *const u8, name_len: u32) -> i32 {
    let name = unsafe { string(name, name_len) };
    with(|h| h.find(kind, &name)).unwrap_or_else(|errno| errno as i32)
}

pub unsafe fn pod_list(namespace: *const u8, namespace_len: u32, buf: *mut u8, cap: u32) -> i32 {
    let namespace = unsafe { string(namespace, namespace_len) };
    unsafe { give(handles(with(|h| h.pods(&namespace))), buf, cap) }
}

pub unsafe fn container_list(pod: i32, buf: *mut u8, cap: u32) -> i32 {
    unsafe { give(handles(with(|h| h.containers(pod))), buf, cap) }
}

pub unsafe fn set_i64(object: i32, field: i32, value: i64) -> i32 {
    done(with(|h| h.set(object, field, Type::Int64, value.to_string())))
}

pub unsafe fn set_bytes(object: i32, field: i32, value: *const u8, value_len: u32) -> i32 {
    let value = unsafe { string(value, value_len) };
    done(with(|h| h.set(object, field, Type::String, value)))
}

pub unsafe fn map_set(object: i32, field: i32, key: *const u8, key_len: u32, value: *const u8, value_len: u32) -> i32 {
    let (key, value) = unsafe { (string(key, key_len), string(value, value_len)) };
    done(with(|h| h.set_entry(object, field, Type::Map, &key, Some(value))))
}

pub unsafe fn map_del(object: i32, field: i32, key: *const u8, key_len: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    done(with(|h| h.set_entry(object, field, Type::Map, &key, None)))
}

pub unsafe fn list_set(object: i32, field: i32, list: *const u8, list_len: u32) -> i32 {
    let list = codec::elements(unsafe { bytes(list, list_len) }).map(|e| Value::String(codec::text(e))).collect();
    done(with(|h| h.set(object, field, Type::List, answer::text(&Value::Array(list)))))
}

pub unsafe fn list_add(object: i32, field: i32, element: *const u8, element_len: u32) -> i32 {
    let element = unsafe { bytes(element, element_len) };
    done(with(|h| h.add_element(object, field, element)))
}

pub unsafe fn list_del(object: i32, field: i32, key: *const u8, key_len: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    done(with(|h| h.set_entry(object, field, Type::Set, &key, None)))
}

pub unsafe fn cgroup_set(object: i32, file: *const u8, file_len: u32, value: *const u8, value_len: u32) -> i32 {
    let (file, value) = unsafe { (string(file, file_len), string(value, value_len)) };
    done(with(|h| h.set_file(object, &file, &value)))
}

pub unsafe fn withdraw(object: i32, field: i32, key: *const u8, key_len: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    done(with(|h| h.withdraw(object, field, &key)))
}

pub unsafe fn conflict(buf: *mut u8, cap: u32) -> i32 {
    unsafe { give(with(|h| if h.conflict { Ok("earlier") } else { Err(NotFound) }), buf, cap) }
}

pub unsafe fn reject(code: i32, reason: *const u8, reason_len: u32) -> i32 {
    let reason = unsafe { string(reason, reason_len) };
    let code = if code == 0 { 9 } else { code };
    with(|h| {
        let before = h.hook.is_some_and(|hook| HOOKS[hook as usize - 1].phase == crate::abi::Phase::Before);
        if !before || ![3, 7, 8, 9].contains(&code) {
            return Invalid as i32;
        }
        h.reject = Some(Reject { code: code.into(), reason });
        0
    })
}

pub unsafe fn fail(reason: *const u8, reason_len: u32) {
    let reason = unsafe { string(reason, reason_len) };
    with(|h| h.failure = Some(reason));
}

pub unsafe fn abort(reason: *const u8, reason_len: u32) {
    let reason = unsafe { string(reason, reason_len) };
    std::panic::resume_unwind(Box::new(Abort(reason)));
}

pub unsafe fn config(buf: *mut u8, cap: u32) -> i32 {
    unsafe { give(Ok(with(|h| h.config.clone())), buf, cap) }
}

pub unsafe fn log(level: i32, text: *const u8, text_len: u32) {
    let level = ["debug", "info", "warn", "error"][level.clamp(0, 3) as usize];
    let line = format!("{level}: {}", unsafe { string(text, text_len) });
    with(|h| h.log.push(line));
}

pub unsafe fn log_level() -> i32 {
    0
}

pub unsafe fn metric(kind: i32, name: *const u8, name_len: u32, value: i64) -> i32 {
    let name = unsafe { string(name, name_len) };
    done(with(|h| {
        h.need(Capability::Metric)?;
        if !(0..=2).contains(&kind) || name.is_empty() || kind == 0 && value < 0 {
            return Err(Invalid);
        }
        let series = h.metrics.entry(name).or_default();
        *series = if kind == 1 { value } else { *series + value };
        Ok(())
    }))
}

pub unsafe fn kv_get(key: *const u8, key_len: u32, buf: *mut u8, cap: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    let answer = with(|h| h.need(Capability::StateKv).and_then(|()| h.kv.get(&key).cloned().ok_or(NotFound)));
    unsafe { give(answer, buf, cap) }
}

pub unsafe fn kv_set(key: *const u8, key_len: u32, value: *const u8, value_len: u32) -> i32 {
    let (key, value) = unsafe { (string(key, key_len), string(value, value_len)) };
    done(with(|h| {
        h.need(Capability::StateKv)?;
        if key.is_empty() || key.len() > 256 || value.len() > 64 << 10 {
            return Err(if key.is_empty() { Invalid } else { TooLarge });
        }
        h.kv.insert(key, value);
        Ok(())
    }))
}

pub unsafe fn kv_del(key: *const u8, key_len: u32) -> i32 {
    let key = unsafe { string(key, key_len) };
    done(with(|h| {
        h.need(Capability::StateKv)?;
        h.kv.remove(&key);
        Ok(())
    }))
}

pub unsafe fn now() -> i64 {
    with(|h| h.time)
}

/// Numbers that follow from the event's time; not those of a node.
pub unsafe fn random(buf: *mut u8, len: u32) -> i32 {
    if len > 256 {
        return TooLarge as i32;
    }
    let mut x = with(|h| h.time) as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let numbers = (0..len).map(|_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    });
    unsafe { give(Ok(numbers.collect::<Vec<u8>>()), buf, len) }.min(0)
}

pub unsafe fn feature(feature: i32) -> i32 {
    let cgroup = with(|h| h.cgroup);
    i32::from(match feature {
        1 => cgroup == Some(2),
        2 => cgroup.is_some(),
        3 | 4 => true,
        _ => false,
    })
}
