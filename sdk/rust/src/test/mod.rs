//! Calls a plugin from `cargo test`, on the machine that builds it and without WebAssembly.
//! An event and the answer to it are written down in JSON, in the format that all tests of
//! plugins have (testdata/abi/README.md):
//!
//! ```
//! # use wasmproxy::{PreCreateContainer, Result};
//! # wasmproxy::plugin! {
//! #     name: "cpu-boost", version: "1.0.0", needs: [Resources],
//! #     on PreCreateContainer(boost),
//! # }
//! # fn boost(c: &PreCreateContainer) -> Result {
//! #     c.resources().set_cpu_quota(2 * c.resources().cpu_quota())
//! # }
//! # fn main() {
//! wasmproxy::test::run(&PLUGIN, r#"{
//!     "hook": "PreCreateContainer",
//!     "container": {"name": "web", "resources.cpu_quota": 50000},
//!     "want": {"changes": {"container.resources.cpu_quota": 100000}}
//! }"#);
//! # }
//! ```
//!
//! What a plugin sets is held to the table of the ABI: which field there is, of which
//! type, in which hook, with which capability, and in which range, and to the table of cgroup
//! files. It is no proxy: values of cgroup files, paths, names of images and the
//! configuration's schema are not checked, fuel is not counted, no other plugin is there but in what a case has as `earlier`, and no runtime
//! is behind it. Statics keep their values from case to case. `wasmproxy plugin test` plays the same files to the built plugin in the
//! proxy's own engine, loaded anew for each case.

mod answer;
mod case;
mod check;
mod host;
pub(crate) mod import;
mod object;
pub(crate) mod value;
#[cfg(test)]
pub(crate) mod vectors;

use std::path::Path;

pub use answer::{Answer, Reject};

use crate::Plugin;
use case::Case;
use value::Value;

/// The value in [`Answer::changes`] of what is deleted.
pub const DELETED: &str = "(deleted)";

/// The value in [`Answer::changes`] of what the plugin has set in an earlier event, and withdraws.
pub const WITHDRAWN: &str = "(withdrawn)";

/// Plays one case, or a list of them, and compares the answers with what they want. A
/// difference is a panic that names the case.
#[track_caller]
pub fn run(plugin: &Plugin, cases: &str) {
    report(&differences(plugin, "case", cases));
}

/// Plays the `.json` files of a directory, or one file, as [`run`] does. A path is relative
/// to the crate, as `cargo test` starts there.
#[track_caller]
pub fn run_files(plugin: &Plugin, path: impl AsRef<Path>) {
    let files = files(path.as_ref());
    assert!(!files.is_empty(), "{}: no fixture there", path.as_ref().display());
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        all.extend(differences(plugin, &name, &text));
    }
    report(&all);
}

/// Tells the plugin one case, and returns its answer.
#[track_caller]
pub fn call(plugin: &Plugin, case: &str) -> Answer {
    let value = Value::parse(case).unwrap_or_else(|e| panic!("{e}"));
    Case::read("case", &value, None).and_then(|c| c.call(plugin)).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn report(differences: &[String]) {
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn files(path: &Path) -> Vec<std::path::PathBuf> {
    if path.is_file() {
        return vec![path.into()];
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut files: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    files
}

/// Plays the cases of a text. A case that cannot be read is a difference too.
fn differences(plugin: &Plugin, file: &str, text: &str) -> Vec<String> {
    let value = match Value::parse(text) {
        Ok(value) => value,
        Err(e) => return vec![format!("{file}: {e}")],
    };
    let cases = match &value {
        Value::Array(cases) => cases.iter().collect(),
        one => vec![one],
    };
    let mut all = Vec::new();
    let mut before = None;
    for (i, case) in cases.iter().enumerate() {
        let name = case.get("name").and_then(Value::as_str).map(String::from);
        let name = name.unwrap_or_else(|| if cases.len() == 1 { file.into() } else { format!("{file} #{}", i + 1) });
        let case = Case::read(&name, case, before.as_ref());
        let found = match &case {
            Ok(case) => case.call(plugin).map_or_else(|e| vec![e.to_string()], |answer| case.compare(&answer)),
            Err(e) => vec![e.to_string()],
        };
        all.extend(found.iter().map(|d| format!("{name}: {d}")));
        before = case.ok();
    }
    all
}
