//! A tree of JSON, for fixtures. It keeps the order of members, and the last one of a name counts.

use crate::json::scan::{self, Cursor};
use crate::{Error, Result, codec};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(String), // as it is written
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Reads a text that is one value. An error says at which byte it is wrong.
    pub fn parse(text: &str) -> Result<Value> {
        let text = text.as_bytes();
        let at = scan::space(text, 0);
        let wrong = |(at, what): (usize, &str)| Error::new(format!("byte {at}: {what}"));
        let end = scan::value(text, at, 0).map_err(wrong)?;
        match scan::space(text, end) {
            rest if rest < text.len() => Err(wrong((rest, "more follows the value"))),
            _ => Ok(Value::read(text, at, end)),
        }
    }

    fn read(text: &[u8], at: usize, end: usize) -> Value {
        match text[at] {
            b'{' => Value::Object(Cursor::enter(text, at).map(|m| (m.key(), Value::read(text, m.at, m.end))).collect()),
            b'[' => Value::Array(Cursor::enter(text, at).map(|m| Value::read(text, m.at, m.end)).collect()),
            b'"' => Value::String(scan::unquoted(&text[at..end])),
            b't' | b'f' => Value::Bool(text[at] == b't'),
            b'n' => Value::Null,
            _ => Value::Number(codec::text(&text[at..end])),
        }
    }

    /// A member of an object; `None` if it has none of this name, or is no object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members().iter().rev().find(|(k, _)| k == name).map(|(_, v)| v)
    }

    /// The members of an object; none of any other value.
    pub fn members(&self) -> &[(String, Value)] {
        match self {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of an array; none of any other value.
    pub fn elements(&self) -> &[Value] {
        match self {
            Value::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The value of a whole number.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(n) => n.parse().ok(),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_everything() {
        let v = Value::parse(r#" {"a": [1, -2.5e3, true, null, ""], "b": {"c": "x"}, "b": []} "#).unwrap();
        assert_eq!(v.get("a").unwrap().elements()[0].as_i64(), Some(1));
        assert_eq!(v.get("a").unwrap().elements()[1], Value::Number("-2.5e3".into()));
        assert_eq!(v.get("b").unwrap(), &Value::Array(vec![]));
        assert_eq!(v.members()[1].1.get("c").unwrap().as_str(), Some("x"));
        for text in ["", "[1] x", "{"] {
            assert!(Value::parse(text).is_err(), "{text:?} was read");
        }
    }
}
