//! The guest of main.go in Rust, on the host functions as abi/ABI.md has them.

use std::collections::HashMap;

#[link(wasm_import_module = "wp1")]
unsafe extern "C" {
    fn get(object: i32, field: i32, buf: *mut u8, len: usize) -> i32;
    fn get_i64(object: i32, field: i32, out: *mut i64) -> i32;
    fn map_get(object: i32, field: i32, key: *const u8, key_len: usize, buf: *mut u8, len: usize) -> i32;
    fn set_i64(object: i32, field: i32, value: i64) -> i32;
    fn map_set(object: i32, field: i32, key: *const u8, key_len: usize, value: *const u8, len: usize) -> i32;
}

const POD: i32 = 1;
const POD_LABELS: i32 = 9;
const CONTAINER: i32 = 2;
const CONTAINER_NAME: i32 = 2;
const CONTAINER_ANNOTATIONS: i32 = 10;
const CPU_PERIOD: i32 = 64;
const CPU_QUOTA: i32 = 65;
const UNIFIED: i32 = 72;

const JSON: &[u8] = br#"{"name":"readwrite","version":"1.0.0","hooks":["PreCreateContainer"],
"capabilities":["resources","unified","annotations"]}"#;

#[used]
#[unsafe(link_section = "wp.manifest")]
static MANIFEST: [u8; JSON.len()] = {
    let mut all = [0; JSON.len()];
    let mut n = 0;
    while n < JSON.len() {
        all[n] = JSON[n];
        n += 1;
    }
    all
};

#[unsafe(no_mangle)]
pub extern "C" fn wp_abi() -> i32 {
    1 << 16
}

/// Lets the allocator take its first memory, which every instance then begins with: what
/// a hook takes is forgotten after it, and memory cannot shrink, so that hooks that begin
/// with none would each take more.
#[unsafe(no_mangle)]
pub extern "C" fn wp_configure() -> i32 {
    drop(std::hint::black_box(Box::new(0)));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn wp_hook(_hook: i32) -> i32 {
    match create() {
        Ok(()) => 0,
        Err(code) => code,
    }
}

fn create() -> Result<(), i32> {
    let action = entry(CONTAINER, CONTAINER_ANNOTATIONS, "example.com/do");
    if action.as_deref() == Some("work") {
        return set_entry(CONTAINER, CONTAINER_ANNOTATIONS, "example.com/found", &work());
    }
    let tier = entry(POD, POD_LABELS, "tier").unwrap_or_default();
    let name = text(|buf, len| unsafe { get(CONTAINER, CONTAINER_NAME, buf, len) }).unwrap_or_default();
    let (quota, period) = (int(CPU_QUOTA), int(CPU_PERIOD));
    check(unsafe { set_i64(CONTAINER, CPU_QUOTA, quota.max(period)) })?;
    set_entry(CONTAINER, UNIFIED, "memory.high", "max")?;
    set_entry(CONTAINER, CONTAINER_ANNOTATIONS, "example.com/tier", &(name + "/" + &tier))
}

/// Counts a thousand words in a map and returns the first of them, sorted.
fn work() -> String {
    let mut count: HashMap<String, i32> = HashMap::new();
    for i in 0..1000 {
        *count.entry((i * 7919 % 257).to_string()).or_default() += 1;
    }
    let mut words: Vec<_> = count.into_keys().collect();
    words.sort();
    words.swap_remove(0)
}

/// Returns a text that the host writes, None if there is none. The host answers with
/// the length whether or not it fits.
fn text(ask: impl Fn(*mut u8, usize) -> i32) -> Option<String> {
    let mut buf = Vec::with_capacity(64);
    loop {
        let len = usize::try_from(ask(buf.as_mut_ptr(), buf.capacity())).ok()?;
        if len <= buf.capacity() {
            unsafe { buf.set_len(len) };
            return String::from_utf8(buf).ok();
        }
        buf.reserve(len);
    }
}

fn entry(object: i32, field: i32, key: &str) -> Option<String> {
    text(|buf, len| unsafe { map_get(object, field, key.as_ptr(), key.len(), buf, len) })
}

fn int(field: i32) -> i64 {
    let mut value = 0;
    unsafe { get_i64(CONTAINER, field, &mut value) };
    value
}

fn set_entry(object: i32, field: i32, key: &str, value: &str) -> Result<(), i32> {
    check(unsafe { map_set(object, field, key.as_ptr(), key.len(), value.as_ptr(), value.len()) })
}

fn check(code: i32) -> Result<(), i32> {
    if code < 0 { Err(code) } else { Ok(()) }
}
