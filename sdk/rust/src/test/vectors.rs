//! The vectors of the library for authors, which Go and C test with, too.

use super::value::Value;
use crate::Result;

/// Calls `f` with each vector of a part of the file.
pub fn each(part: &str, f: impl Fn(&Value)) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/library.json");
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let all = Value::parse(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
    let vectors = all.get(part).map_or(&[][..], Value::elements);
    assert!(!vectors.is_empty(), "{file} has no {part}");
    vectors.iter().for_each(f);
}

/// Compares what a vector's input comes to with what it should, or with the error that it should give.
pub fn compare(vector: &Value, is: &str, got: Result<String>) {
    let error = vector.get("error").and_then(Value::as_str);
    match (got, error) {
        (Ok(got), None) => assert_eq!(got, is, "{vector:?}"),
        (got, error) => assert_eq!(got.err().map(|e| e.to_string()).as_deref(), error, "{vector:?}"),
    }
}
