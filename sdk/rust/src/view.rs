//! Numbers and texts of the event's pod and container, after the first few, from the flat record that
//! `view` gives: no call of the host for each. RATIONALE.md has the figures.

use std::cell::{Cell, RefCell};

use crate::abi::object;
use crate::{codec, host, read};

/// How many fields of an object are read one by one before the record is taken.
pub const READS: u8 = 8;

/// Most records are shorter.
const ROOM: usize = 2048;

thread_local! {
    // Of the pod and of the container: the reads so far, READS + 1 once there is a record.
    static READ: [Cell<u8>; 2] = const { [Cell::new(0), Cell::new(0)] };
    static RECORDS: RefCell<[Option<Vec<u8>>; 2]> = const { RefCell::new([None, None]) };
}

/// Forgets the records of the event before.
#[inline]
pub fn forget() {
    if !cfg!(feature = "view") {
        return;
    }
    if READ.with(|[pod, container]| pod.replace(0).max(container.replace(0))) > READS {
        RECORDS.take();
    }
}

/// What the record says of a field.
pub enum Field {
    /// There is no record: ask the host.
    Ask,
    /// The field is 0 or empty, or is not there.
    Empty,
    /// An i64.
    Number(i64),
    /// A string.
    Text(String),
}

/// Looks a field up, and takes the record if it is time.
#[inline]
pub fn field(object: i32, field: i32) -> Field {
    if !cfg!(feature = "view") {
        return Field::Ask;
    }
    let place = (object - object::POD) as usize;
    if READ.with(|all| all.get(place).is_some_and(late)) { recorded(place, field) } else { Field::Ask }
}

/// Counts a read, and reports whether it is one for the record.
fn late(reads: &Cell<u8>) -> bool {
    reads.set(reads.get().min(READS) + 1);
    reads.get() > READS
}

/// Looks a field up in the record.
#[inline(never)]
fn recorded(place: usize, field: i32) -> Field {
    RECORDS.with_borrow_mut(|all| find(all[place].get_or_insert_with(|| take(object::POD + place as i32)), field))
}

/// An object that is not there, or a host without `view`, gives no bytes.
fn take(object: i32) -> Vec<u8> {
    read::fill_from(ROOM, |buf| host::view(object, buf)).unwrap_or_default()
}

// The record: u32 size, u32 count, count times {u32 field, u32 type, u64 payload},
// sorted by field.
fn find(record: &[u8], field: i32) -> Field {
    if record.is_empty() {
        return Field::Ask;
    }
    let mut r = codec::Reader(record);
    r.number();
    let count = r.number() as usize;
    let (rows, _) = r.0.as_chunks::<16>();
    let rows = &rows[..count.min(rows.len())];
    match rows.binary_search_by_key(&(field as u32), |row| codec::Reader(row).number()) {
        Ok(i) => value(record, &rows[i]),
        Err(_) => Field::Empty,
    }
}

fn value(record: &[u8], row: &[u8; 16]) -> Field {
    const INT64: u32 = 1;
    let mut r = codec::Reader(&row[4..]);
    if r.number() == INT64 {
        let [low, high] = [r.number(), r.number()];
        return Field::Number((u64::from(high) << 32 | u64::from(low)) as i64);
    }
    let [offset, length] = [r.number() as usize, r.number() as usize];
    let bytes = offset.checked_add(length).and_then(|end| record.get(offset..end));
    bytes.map_or(Field::Ask, |b| Field::Text(codec::text(b)))
}
