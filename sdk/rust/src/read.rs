//! Reading what the host knows. An object or field that is not there is empty; any other
//! refusal fails the hook.

use crate::error::{Result, found};
use crate::host::{self, Buffer};
use crate::{Errno, codec};

/// Most values are shorter.
const ROOM: usize = 128;

/// Calls a host function that fills a buffer, once more with a larger buffer if the value
/// did not fit. Gives the host's error as it came.
pub fn fill(call: impl Fn(Buffer) -> i32) -> core::result::Result<Vec<u8>, i32> {
    attempt(ROOM, &call).or_else(|n| if n < 0 { Err(n) } else { again(n as usize, call) })
}

#[cold]
fn again(room: usize, call: impl Fn(Buffer) -> i32) -> core::result::Result<Vec<u8>, i32> {
    // The value does not grow between the two calls.
    attempt(room, call).map_err(|n| if n < 0 { n } else { Errno::TooLarge as i32 })
}

/// Calls a host function that fills a buffer of that many bytes. An error is the host's own, or
/// how many bytes the value has if they do not fit.
#[inline]
fn attempt(room: usize, call: impl Fn(Buffer) -> i32) -> core::result::Result<Vec<u8>, i32> {
    let mut bytes: Vec<u8> = Vec::with_capacity(room);
    let n = call((bytes.as_mut_ptr(), room as u32));
    if n < 0 || n as usize > room {
        return Err(n);
    }
    // SAFETY: the host has written that many bytes.
    unsafe { bytes.set_len(n as usize) };
    Ok(bytes)
}

/// The same where NOT_FOUND is an answer.
#[inline]
pub fn bytes(op: &str, key: &str, call: impl Fn(Buffer) -> i32) -> Result<Option<Vec<u8>>> {
    match fill(call) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(n) => found(op, key, n).map(|_| None),
    }
}

/// A string field.
pub fn text(op: &str, object: i32, field: i32) -> String {
    string(op, "", |buf| host::get(object, field, buf)).unwrap_or_default()
}

/// A string where NOT_FOUND is an answer.
#[inline]
fn string(op: &str, key: &str, call: impl Fn(Buffer) -> i32) -> Option<String> {
    bytes(op, key, call).ok().flatten().map(codec::string)
}

/// An i64 field, 0 if it is not there.
pub fn number(op: &str, object: i32, field: i32) -> i64 {
    said(op, object, field).unwrap_or(0)
}

/// The value of one key of a map.
pub fn entry(op: &str, object: i32, field: i32, key: &str) -> Option<String> {
    string(op, key, |buf| host::map_get(object, field, key, buf))
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
