use crate::error::{Result, done};
use crate::{Feature, codec, host, read};

/// The weight of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Level {
    /// For whoever looks for a defect.
    Debug = 0,
    /// What happened.
    Info = 1,
    /// What should be looked at.
    Warn = 2,
    /// What went wrong.
    Error = 3,
}

/// Writes a line to the proxy's log, which adds the plugin, the hook and the pod. Lines
/// over the host's limit are dropped and counted. Environment variables may be secrets: do
/// not log them.
pub fn log(level: Level, text: &str) {
    host::log(level as i32, text);
}

/// Reports whether lines of this level are kept. What is costly to put together need not
/// be where they are not.
pub fn logs(level: Level) -> bool {
    level as i32 >= host::log_level()
}

/// The plugin's configuration as the operator wrote it, "" if there is none.
pub fn config() -> String {
    let bytes = read::bytes("config", "", host::config).ok().flatten();
    codec::text(&bytes.unwrap_or_default())
}

/// The event's time in nanoseconds since the Unix epoch. It does not move while a handler
/// runs, and is 0 before the first event.
pub fn now() -> i64 {
    host::now()
}

/// Fills `bytes`, 256 at most, with numbers that follow from the plugin and the event: the
/// same event has the same ones. They are not for keys.
pub fn random(bytes: &mut [u8]) -> Result {
    done("random", "", host::random(bytes))
}

/// Reports whether node and host have something that others of this ABI version may lack.
pub fn has_feature(feature: Feature) -> bool {
    host::feature(feature as i32) == 1
}

/// Ends the guest at once with a message, for a state that cannot be. The hook fails, and
/// the next call finds a fresh guest. A panic does the same with its own message.
pub fn abort(reason: &str) -> ! {
    host::abort(reason);
    unreachable!("abort returned")
}

/// The request itself as CRI's protobuf, without what the plugin may not see. It needs
/// [`Capability::CriRaw`](crate::Capability::CriRaw), and for values of the environment
/// and credentials their own.
pub fn request() -> Result<Vec<u8>> {
    read::bytes("request", "", host::cri_raw).map(Option::unwrap_or_default)
}

/// Values that are kept from one call to the next, also when the plugin is reloaded. All
/// of it needs [`Capability::StateKv`](crate::Capability::StateKv).
pub mod kv {
    use super::{Result, done, host, read};

    /// The value of a key.
    pub fn get(key: &str) -> Result<Option<Vec<u8>>> {
        read::bytes("kv::get", key, |buf| host::kv_get(key, buf))
    }

    /// Sets the value of a key: a key of 256 bytes and a value of 64 KiB at most. What is
    /// set in a call that fails is forgotten.
    pub fn set(key: &str, value: impl AsRef<[u8]>) -> Result {
        done("kv::set", key, host::kv_set(key, value.as_ref()))
    }

    /// Removes a key, if it is there.
    pub fn delete(key: &str) -> Result {
        done("kv::delete", key, host::kv_del(key))
    }
}

/// Counts and measurements. A name is of small letters, digits and `_`, with labels after
/// it where there are any: `denied_total{tier="gold"}`. All of it needs
/// [`Capability::Metric`](crate::Capability::Metric), and happens also if the call fails. A
/// value for a name of another kind, or for more than 64 names, is dropped without an error,
/// and the host counts it.
pub mod metric {
    use super::{Result, done, host};

    /// Lets a counter grow by a value that is not negative.
    pub fn add(name: &str, value: i64) -> Result {
        done("metric::add", name, host::metric(0, name, value))
    }

    /// Sets a gauge.
    pub fn set(name: &str, value: i64) -> Result {
        done("metric::set", name, host::metric(1, name, value))
    }

    /// Gives a histogram a value.
    pub fn observe(name: &str, value: i64) -> Result {
        done("metric::observe", name, host::metric(2, name, value))
    }
}
