use std::cell::{Cell, RefCell};
use std::fmt;

use crate::{Errno, codec, host, read};

/// What handlers and setters return.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// Why a handler failed: the host's refusal of a method, or the plugin's own words.
///
/// A refusal of the host fails the hook whether or not the plugin looks at it: none of
/// the plugin's changes happen, and the operator's failure policy says what becomes of
/// the call. A plugin that can do without takes it back with [`Error::handled`].
///
/// The plugin's own failures are made from text: `Err("no such tier".into())`.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Failure>); // boxed, so that a result is one word

#[derive(Clone, PartialEq, Eq)]
struct Failure {
    text: String,
    errno: Option<Errno>,
    refusal: Option<usize>, // its place in REFUSALS
}

struct Refusal {
    text: String,
    errno: Errno,
    read: bool, // of a method that gives a value and no error
    handled: bool,
}

// A guest runs one call at a time, and in a test each thread has an event of its own.
thread_local! {
    static REFUSALS: RefCell<Vec<Refusal>> = const { RefCell::new(Vec::new()) };
    static REJECTED: Cell<bool> = const { Cell::new(false) };
}

impl Error {
    /// A failure in the plugin's own words.
    pub fn new(text: impl Into<String>) -> Error {
        Error(Box::new(Failure { text: text.into(), errno: None, refusal: None }))
    }

    /// The host's reason, `None` for the plugin's own failures.
    pub fn errno(&self) -> Option<Errno> {
        self.0.errno
    }

    /// Reports whether this is a refusal of the host for that reason, and if it is, it no
    /// longer fails the hook: the plugin has dealt with it.
    ///
    /// ```
    /// # use wasmproxy::{Errno, PreCreateContainer, Result};
    /// fn limit(c: &PreCreateContainer) -> Result {
    ///     match c.resources().set_unified("memory.high", "268435456") {
    ///         Err(e) if e.handled(Errno::Unsupported) => Ok(()), // cgroup v1: go on without
    ///         other => other,
    ///     }
    /// }
    /// ```
    ///
    /// An error of [`read_error`] stands for all reads before that failed for this reason.
    pub fn handled(&self, reason: Errno) -> bool {
        let Some(place) = self.0.refusal else { return false };
        REFUSALS.with_borrow_mut(|all| match all.get(place) {
            Some(refusal) if refusal.errno == reason => {
                let reads = refusal.read;
                for (i, other) in all.iter_mut().enumerate() {
                    other.handled |= i == place || reads && other.read && other.errno == reason;
                }
                true
            }
            _ => false,
        })
    }

    /// Puts a text and ": " before the error's own.
    pub fn context(mut self, text: &str) -> Error {
        self.0.text = [text, ": ", &self.0.text].concat();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Error {}

impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error::new(text)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::new(text)
    }
}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Error {
        Error::new(error.to_string())
    }
}

/// The error of the first read of the call that failed and was not [handled](Error::handled). A read is a method that
/// gives a value and no [`Result`]. What a pod or container does not have is no failure.
///
/// ```
/// # use wasmproxy::{Container, Errno, Result, read_error};
/// fn quota(c: &Container) -> Result<Option<i64>> {
///     let quota = c.resources().cpu_quota();
///     match read_error() {
///         Err(e) if e.handled(Errno::Unsupported) => Ok(None), // the runtime does not report this container's resources
///         other => other.map(|()| Some(quota)),
///     }
/// }
/// ```
pub fn read_error() -> Result {
    let first = REFUSALS.with_borrow(|all| {
        let place = all.iter().position(|r| r.read && !r.handled)?;
        Some((place, all[place].text.clone(), all[place].errno))
    });
    match first {
        Some((place, text, errno)) => Err(Error(Box::new(Failure { text, errno: Some(errno), refusal: Some(place) }))),
        None => Ok(()),
    }
}

/// The id of the plugin that has set what the last method that was refused with [`Errno::Conflict`] was to set; `None` if none
/// was in this call.
pub fn conflict_with() -> Option<String> {
    read::fill(host::conflict).ok().map(codec::string)
}

/// Makes an error of what a host function refused, and remembers it.
#[cold]
pub(crate) fn refused(op: &str, key: &str, result: i32, read: bool) -> Error {
    let errno = errno(result);
    let space = if key.is_empty() { "" } else { " " };
    let text = [op, space, key, ": ", errno.name()].concat();
    let place = REFUSALS.with_borrow_mut(|all| {
        all.push(Refusal { text: text.clone(), errno, read, handled: false });
        all.len() - 1
    });
    Error(Box::new(Failure { text, errno: Some(errno), refusal: Some(place) }))
}

/// What a host function came to of which only success matters.
#[inline]
pub(crate) fn done(op: &str, key: &str, result: i32) -> Result {
    if result < 0 { Err(refused(op, key, result, false)) } else { Ok(()) }
}

/// The same where NOT_FOUND is an answer.
#[inline]
pub(crate) fn found(op: &str, key: &str, result: i32) -> Result<Option<i32>> {
    match result {
        n if n >= 0 => Ok(Some(n)),
        n if n == Errno::NotFound as i32 => Ok(None),
        n => Err(refused(op, key, n, true)),
    }
}

/// A number that no version of this SDK knows counts as invalid.
pub(crate) fn errno(result: i32) -> Errno {
    let place = (-1_i32).wrapping_sub(result) as usize;
    Errno::ALL.get(place).copied().unwrap_or(Errno::Invalid)
}

/// Refuses the call, and returns the error that ends the handler.
pub(crate) fn reject(code: i32, reason: &str) -> Result {
    done("reject", "", host::reject(code, reason))?;
    REJECTED.set(true);
    Err(Error::new(reason))
}

/// Runs a handler between a clean start and the answer of `wp_hook`.
pub(crate) fn answer(handler: impl FnOnce() -> Result) -> i32 {
    if REFUSALS.with_borrow(|all| !all.is_empty()) {
        REFUSALS.take();
    }
    REJECTED.set(false);
    conclude(handler())
}

/// A refusal that nobody dealt with fails the handler that ignored it.
fn conclude(result: Result) -> i32 {
    if REJECTED.get() {
        return 1;
    }
    let (text, errno) = match result {
        Err(e) => (e.0.text, e.0.errno.unwrap_or(Errno::Invalid)),
        Ok(()) => match unhandled() {
            Some(refusal) => refusal,
            None => return 0,
        },
    };
    host::fail(&text);
    errno as i32
}

fn unhandled() -> Option<(String, Errno)> {
    REFUSALS.with_borrow(|all| all.iter().find(|r| !r.handled).map(|r| (r.text.clone(), r.errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads that the host refuses fail the hook until they are handled, all of one reason at once.
    #[test]
    fn reads() {
        let (unsupported, not_found) = (Errno::Unsupported as i32, Errno::NotFound as i32);
        assert_eq!(answer(|| { read_error() }), 0);
        let quota = || found("cpu_quota", "", unsupported).ok();
        assert_eq!(
            answer(|| {
                quota();
                Ok(())
            }),
            unsupported
        );
        let skipped = answer(|| {
            let _ = found("label", "x", not_found);
            quota();
            quota();
            let error = read_error().unwrap_err();
            assert!(!error.handled(Errno::Denied));
            assert!(error.handled(Errno::Unsupported) && read_error().is_ok());
            Ok(())
        });
        assert_eq!(skipped, 0);
        let set = answer(|| {
            let _ = done("set_cpu_quota", "", unsupported);
            quota();
            assert!(read_error().unwrap_err().handled(Errno::Unsupported));
            Ok(())
        });
        assert_eq!(set, unsupported);
    }
}
