//! The manifest's JSON, written when the plugin is compiled.

mod json;

pub use json::Json;

use crate::{Capability, Hook};

/// Modes of a plugin's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Memory is put back after each call.
    None,
    /// One instance, which keeps its memory and serves one call at a time. A trap loses it.
    Instance,
}

/// What one call needs at most; 0 is the host's default. A plugin that asks for more than its
/// operator allows is not loaded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Units of about an instruction each.
    pub fuel: u64,
    /// Bytes of one instance.
    pub memory: u64,
    /// Wall time in milliseconds.
    pub time_ms: u64,
    /// Calls of host functions, also in Tick and Synchronize unless `tick_host_calls` is given.
    pub host_calls: u64,
    /// Calls of host functions in Tick and Synchronize.
    pub tick_host_calls: u64,
    /// Fuel of a Tick; `fuel` if 0 and that is given.
    pub tick_fuel: u64,
    /// Wall time of a Tick in milliseconds; `time_ms` if 0 and that is given.
    pub tick_time_ms: u64,
}

impl Limits {
    /// The host's.
    pub const DEFAULT: Limits =
        Limits { fuel: 0, memory: 0, time_ms: 0, host_calls: 0, tick_host_calls: 0, tick_fuel: 0, tick_time_ms: 0 };
}

/// Narrows a hook to some pods and containers. The host evaluates it, so that an event
/// which does not match wakes no guest. Every key that is given must match.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a> {
    /// Globs of namespaces: `*` stands for any run of characters but `/`, `?` for one.
    pub namespaces: &'a [&'a str],
    /// Globs of QoS classes.
    pub qos: &'a [&'a str],
    /// Globs of runtime handlers.
    pub runtime_handlers: &'a [&'a str],
    /// Globs of names; looked at in hooks of containers only.
    pub containers: &'a [&'a str],
    /// Labels that the pod must have; `*` and "" stand for any value.
    pub labels: &'a [(&'a str, &'a str)],
    /// Annotations that the pod must have, as with labels.
    pub annotations: &'a [(&'a str, &'a str)],
}

impl Match<'_> {
    /// Matches everything.
    pub const ANY: Match<'static> =
        Match { namespaces: &[], qos: &[], runtime_handlers: &[], containers: &[], labels: &[], annotations: &[] };

    const fn is_any(&self) -> bool {
        self.namespaces.len() + self.qos.len() + self.runtime_handlers.len() + self.containers.len() == 0
            && self.labels.len() + self.annotations.len() == 0
    }
}

/// What a plugin says of itself. [`plugin!`](crate::plugin) fills it in.
#[allow(missing_docs)]
pub struct Manifest<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub description: &'a str,
    pub license: &'a str,
    pub needs: &'a [Capability],
    pub state: State,
    pub tick_ms: u64,
    pub limits: Limits,
    pub durable: &'a [&'a str],
    pub optional: &'a [&'a str],
    /// A JSON object as it is, "" for none.
    pub config_schema: &'a str,
    pub hooks: &'a [(Hook, Match<'a>)],
}

impl Manifest<'_> {
    /// Of nobody.
    pub const EMPTY: Manifest<'static> = Manifest {
        name: "",
        version: "",
        description: "",
        license: "",
        needs: &[],
        state: State::None,
        tick_ms: 0,
        limits: Limits::DEFAULT,
        durable: &[],
        optional: &[],
        config_schema: "",
        hooks: &[],
    };

    /// Writes the JSON. What the host would refuse is an error of the compiler.
    pub const fn json(&self) -> Json {
        self.check();
        let mut out = Json::new();
        out.raw("{\"name\":");
        out.string(self.name);
        out.member(",\"version\":", self.version);
        out.member(",\"description\":", self.description);
        out.member(",\"license\":", self.license);
        out.member(",\"sdk\":", concat!("rust ", env!("CARGO_PKG_VERSION")));
        out.hooks(self.hooks);
        out.capabilities(self.needs);
        out.limits(&self.limits);
        if matches!(self.state, State::Instance) {
            out.raw(",\"state\":\"instance\"");
        }
        out.count(",\"tick_ms\":", self.tick_ms);
        out.strings(",\"durable\":", self.durable);
        out.strings(",\"optional\":", self.optional);
        if !self.config_schema.is_empty() {
            out.raw(",\"config_schema\":");
            out.raw(self.config_schema);
        }
        out.raw("}");
        out
    }

    const fn check(&self) {
        assert!(is_name(self.name), "plugin!: name is not 1 to 63 letters, digits and any of . _ + -");
        assert!(is_name(self.version), "plugin!: version is not 1 to 63 letters, digits and any of . _ + -");
        assert!(!self.hooks.is_empty(), "plugin!: without a hook it would never be called");
        let mut seen = 0_u64;
        let mut i = 0;
        while i < self.hooks.len() {
            let bit = 1 << self.hooks[i].0 as u32;
            assert!(seen & bit == 0, "plugin!: a hook has two handlers");
            seen |= bit;
            i += 1;
        }
        let ticks = seen >> Hook::Tick as u32 & 1 == 1;
        assert!(!ticks || self.tick_ms >= 1000, "plugin!: the hook Tick needs tick_ms of 1000 or more");
        assert!(ticks || self.tick_ms == 0, "plugin!: tick_ms is for the hook Tick");
    }
}

/// The same words that the host takes: no quoting anywhere.
const fn is_name(s: &str) -> bool {
    let b = s.as_bytes();
    let mut i = 0;
    while i < b.len() {
        let inner = i > 0 && matches!(b[i], b'.' | b'_' | b'+' | b'-');
        if !b[i].is_ascii_alphanumeric() && !inner {
            return false;
        }
        i += 1;
    }
    !b.is_empty() && b.len() <= 63
}
