//! Plugins for wasmproxy, in Rust. A plugin is a function for each hook that it wants, and
//! [`plugin!`], which says what it is; there is nothing else to write:
//!
//! ```
//! use wasmproxy::{PreCreateContainer, Result};
//!
//! wasmproxy::plugin! {
//!     name: "cpu-boost",
//!     version: "1.0.0",
//!     needs: [Resources],
//!     on PreCreateContainer(boost),
//! }
//!
//! fn boost(c: &PreCreateContainer) -> Result {
//!     c.resources().set_cpu_quota(2 * c.resources().cpu_quota())
//! }
//! # fn main() {}
//! ```
//!
//! The event of a hook has the methods that the hook allows, so that what it cannot change
//! does not compile. Getters show the event as earlier plugins left it, not the plugin's
//! own changes. A setter that the host refuses fails the handler, whether or not its
//! result is looked at, and then none of the changes happen; [`Error::handled`] takes it
//! back. A panic fails the hook with its message and place.
//!
//! The crate has no dependencies. In a guest it calls the host; elsewhere module `test`
//! takes the host's place, so that `cargo test` runs a plugin without WebAssembly.
//!
//! It is not the specification: ABI.md says what each hook, field and error means.

#![warn(missing_docs)]

pub mod abi;
#[cfg(target_arch = "wasm32")]
mod alloc;
mod call;
mod codec;
mod container;
mod error;
mod getter;
pub mod glob;
pub mod hook;
mod host;
pub mod image;
pub mod json;
mod manifest;
mod node;
mod plugin;
mod pod;
pub mod quantity;
mod read;
mod record;
mod resources;
mod store;
#[cfg(not(target_arch = "wasm32"))]
pub mod test;
mod write;

pub use abi::{Capability, Errno, Feature, Hook};
pub use call::{Level, abort, config, has_feature, kv, log, logs, metric, now, random, request};
pub use container::Container;
pub use error::{Error, Result, conflict_with, read_error};
pub use hook::*;
pub use manifest::{Limits, Match, State};
pub use node::Node;
pub use plugin::Plugin;
pub use pod::Pod;
pub use record::{Device, Mount, Propagation};
pub use resources::{Resources, ResourcesMut};
pub use store::{containers, find_container, find_pod, find_pod_by_id, find_pod_by_uid, pods, read_cgroups};

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use alloc::Bump;
#[doc(hidden)]
pub use manifest::{Json, Manifest};
#[doc(hidden)]
pub use plugin::{hook_of, no_handler, report_panics, with_event};
