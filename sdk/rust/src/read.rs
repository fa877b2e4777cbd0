//! Reading what the host knows. An object or field that is not there is empty; any other
//! refusal fails the hook.

use crate::error::{Result, found};
use crate::host::{self, Buffer};
use crate::view::{self, Field};
use crate::{Errno, codec};

/// Most values are shorter.
const ROOM: usize = 128;

/// Calls a host function that fills a buffer, once more with a larger buffer if the value
/// did not fit. Gives the host's error as it came.
pub fn fill(call: impl Fn(Buffer) -> i32) -> core::result::Result<Vec<u8>, i32> {
    fill_from(ROOM, call)
}

/// The same, beginning with another room.
pub fn fill_from(room: usize, call: impl Fn(Buffer) -> i32) -> core::result::Result<Vec<u8>, i32> {
    let mut bytes: Vec<u8> = Vec::with_capacity(room);
    let mut n = call((bytes.as_mut_ptr(), bytes.capacity() as u32));
    if n > bytes.capacity() as i32 {
        bytes.reserve_exact(n as usize);
        n = call((bytes.as_mut_ptr(), bytes.capacity() as u32));
    }
    if n < 0 {
        return Err(n);
    }
    let length = n as usize;
    if length > bytes.capacity() {
        return Err(Errno::TooLarge as i32); // it grew between the two calls: it does not
    }
    // SAFETY: the host has written that many bytes.
    unsafe { bytes.set_len(length) };
    Ok(bytes)
}

/// The same where NOT_FOUND is an answer.
pub fn bytes(op: &str, key: &str, call: impl Fn(Buffer) -> i32) -> Result<Option<Vec<u8>>> {
    match fill(call) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(n) => found(op, key, n).map(|_| None),
    }
}

/// A string field.
pub fn text(op: &str, object: i32, field: i32) -> String {
    let bytes = match view::field(object, field) {
        Field::Text(bytes) => bytes,
        Field::Ask => bytes(op, "", |buf| host::get(object, field, buf)).ok().flatten().unwrap_or_default(),
        _ => return String::new(),
    };
    String::from_utf8(bytes).unwrap_or_else(|e| codec::text(e.as_bytes()))
}

/// An i64 field, `None` if it is not there.
pub fn number(op: &str, object: i32, field: i32) -> Option<i64> {
    match view::field(object, field) {
        Field::Number(n) => Some(n),
        Field::Ask => said(op, object, field),
        _ => None,
    }
}

/// The value of one key of a map.
pub fn entry(op: &str, object: i32, field: i32, key: &str) -> Option<String> {
    bytes(op, key, |buf| host::map_get(object, field, key, buf)).ok().flatten().map(|v| codec::text(&v))
}

/// The dump of a map or list.
fn dump(op: &str, call: impl Fn(Buffer) -> i32) -> Vec<u8> {
    bytes(op, "", call).ok().flatten().unwrap_or_default()
}

/// A whole map.
pub fn entries(op: &str, object: i32, field: i32) -> Vec<(String, String)> {
    let dump = dump(op, |buf| host::map_dump(object, field, buf));
    codec::entries(&dump).map(|(k, v)| (codec::text(k), codec::text(v))).collect()
}

/// A whole list, as `each` makes it of the bytes of its elements.
pub fn list<T>(op: &str, object: i32, field: i32, each: impl Fn(&[u8]) -> T) -> Vec<T> {
    let dump = dump(op, |buf| host::list_dump(object, field, buf));
    codec::elements(&dump).map(each).collect()
}

/// A list of strings.
pub fn texts(op: &str, object: i32, field: i32) -> Vec<String> {
    list(op, object, field, codec::text)
}

/// Handles, 4 bytes each.
pub fn handles(op: &str, call: impl Fn(Buffer) -> i32) -> Vec<i32> {
    let list = bytes(op, "", call).ok().flatten().unwrap_or_default();
    list.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect()
}

/// An i64 field of which 0 says something, `None` if it is not there.
pub fn said(op: &str, object: i32, field: i32) -> Option<i64> {
    match host::get_i64(object, field) {
        Ok(n) => Some(n),
        Err(e) => found(op, "", e).ok().flatten().map(i64::from),
    }
}
