//! Writes JSON by constant functions.

use super::{Limits, Match};
use crate::{Capability, Hook};

/// The longest manifest that hosts take, in bytes.
const MAX: usize = 16 << 10;

/// JSON that is written by constant functions, which have no `Vec`.
pub struct Json {
    bytes: [u8; MAX],
    len: usize,
}

#[allow(clippy::len_without_is_empty)] // it never is
impl Json {
    pub(super) const fn new() -> Json {
        Json { bytes: [0; MAX], len: 0 }
    }

    /// In bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The text as an array of exactly its length, as a custom section must be.
    pub const fn array<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        let mut i = 0;
        while i < N {
            out[i] = self.bytes[i];
            i += 1;
        }
        out
    }

    const fn byte(&mut self, b: u8) {
        assert!(self.len < MAX, "plugin!: the manifest has more than 16 KiB");
        self.bytes[self.len] = b;
        self.len += 1;
    }

    pub(super) const fn raw(&mut self, s: &str) {
        let mut i = 0;
        while i < s.len() {
            self.byte(s.as_bytes()[i]);
            i += 1;
        }
    }

    pub(super) const fn string(&mut self, s: &str) {
        self.byte(b'"');
        let mut i = 0;
        while i < s.len() {
            self.escaped(s.as_bytes()[i]);
            i += 1;
        }
        self.byte(b'"');
    }

    const fn escaped(&mut self, b: u8) {
        const HEX: &[u8] = b"0123456789abcdef";
        if b < b' ' {
            self.raw("\\u00");
            self.byte(HEX[(b >> 4) as usize]);
            self.byte(HEX[(b & 15) as usize]);
            return;
        }
        if b == b'"' || b == b'\\' {
            self.byte(b'\\');
        }
        self.byte(b);
    }

    /// Leaves a member out if it is empty.
    pub(super) const fn member(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.raw(key);
            self.string(value);
        }
    }

    pub(super) const fn count(&mut self, key: &str, value: u64) {
        if value > 0 {
            self.raw(key);
            self.number(value);
        }
    }

    const fn number(&mut self, value: u64) {
        if value >= 10 {
            self.number(value / 10);
        }
        self.byte(b'0' + (value % 10) as u8);
    }

    pub(super) const fn strings(&mut self, key: &str, list: &[&str]) {
        if list.is_empty() {
            return;
        }
        self.raw(key);
        let mut i = 0;
        while i < list.len() {
            self.byte(if i == 0 { b'[' } else { b',' });
            self.string(list[i]);
            i += 1;
        }
        self.byte(b']');
    }

    const fn map(&mut self, key: &str, entries: &[(&str, &str)]) {
        if entries.is_empty() {
            return;
        }
        self.raw(key);
        let mut i = 0;
        while i < entries.len() {
            self.byte(if i == 0 { b'{' } else { b',' });
            self.string(entries[i].0);
            self.byte(b':');
            self.string(entries[i].1);
            i += 1;
        }
        self.byte(b'}');
    }

    pub(super) const fn capabilities(&mut self, needs: &[Capability]) {
        if needs.is_empty() {
            return;
        }
        self.raw(",\"capabilities\":");
        let mut i = 0;
        while i < needs.len() {
            self.byte(if i == 0 { b'[' } else { b',' });
            self.string(needs[i].name());
            i += 1;
        }
        self.byte(b']');
    }

    pub(super) const fn hooks(&mut self, hooks: &[(Hook, Match<'_>)]) {
        self.raw(",\"hooks\":[");
        let mut i = 0;
        while i < hooks.len() {
            if i > 0 {
                self.byte(b',');
            }
            self.hook(hooks[i].0, &hooks[i].1);
            i += 1;
        }
        self.byte(b']');
    }

    const fn hook(&mut self, hook: Hook, m: &Match<'_>) {
        let name = crate::abi::HOOKS[hook as usize - 1].name;
        if m.is_any() {
            self.string(name);
            return;
        }
        self.raw("{\"hook\":");
        self.string(name);
        self.raw(",\"match\":{");
        let start = self.len;
        self.strings(",\"namespaces\":", m.namespaces);
        self.strings(",\"qos\":", m.qos);
        self.strings(",\"runtime_handlers\":", m.runtime_handlers);
        self.strings(",\"containers\":", m.containers);
        self.map(",\"labels\":", m.labels);
        self.map(",\"annotations\":", m.annotations);
        self.bytes[start] = b' '; // instead of the first comma
        self.raw("}}");
    }

    pub(super) const fn limits(&mut self, l: &Limits) {
        if l.fuel + l.memory + l.time_ms + l.host_calls + l.tick_host_calls + l.tick_fuel + l.tick_time_ms == 0 {
            return;
        }
        self.raw(",\"limits\":{");
        let start = self.len;
        self.count(",\"fuel\":", l.fuel);
        self.count(",\"memory\":", l.memory);
        self.count(",\"time_ms\":", l.time_ms);
        self.count(",\"host_calls\":", l.host_calls);
        self.count(",\"tick_host_calls\":", l.tick_host_calls);
        self.count(",\"tick_fuel\":", l.tick_fuel);
        self.count(",\"tick_time_ms\":", l.tick_time_ms);
        self.bytes[start] = b' '; // instead of the first comma
        self.raw("}");
    }
}
