//! Settings, and annotations that are objects in JSON. The whole text is checked first, and
//! then members are looked up by their keys. It adds up to 16 KB to a guest; serde_json adds 64.
//!
//! ```
//! use wasmproxy::{Result, json, quantity};
//!
//! struct Settings { policy: String, threshold: i64, memory: i64 }
//!
//! fn parse(config: &str) -> Result<Settings> {
//!     let settings = json::parse(config)?; // "" is an empty object
//!     Ok(Settings {
//!         policy: settings.one_of("policy", &["none", "auto"])?.unwrap_or("auto").into(),
//!         threshold: settings.int("threshold", 0..=100)?.unwrap_or(50),
//!         memory: settings.parsed("memory", quantity::value)?.unwrap_or(0),
//!     })
//! }
//!
//! let wrong = parse(r#"{"threshold": 101}"#).err().unwrap();
//! assert_eq!(wrong.to_string(), "threshold at byte 14: 101 is not a whole number from 0 to 100");
//! ```
//!
//! Each getter looks its key up in the text. An object with many keys is read in one pass by
//! [`Object::text_members`] or [`Object::object_members`].
//!
//! It writes no JSON, fills no structs, and knows no schema: unknown keys are the host's to
//! refuse, by the manifest's schema.

pub(crate) mod scan;

use std::ops::RangeInclusive;

use crate::{Error, Result, codec};
use scan::{Cursor, Member};

/// An object in JSON, or one that is not there. A getter gives `None` for a member that is
/// not there or null, and an error for one of another type or out of range, with its path of
/// keys and its place in bytes from 0.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    text: &'a [u8],
    at: Option<usize>,
}

/// Reads a text that is one object as RFC 8259 has it, at most 64 values deep. An empty text
/// is an empty object.
pub fn parse(text: &str) -> Result<Object<'_>> {
    let text = text.as_bytes();
    if text.is_empty() {
        return Ok(Object { text, at: None });
    }
    let at = scan::space(text, 0);
    let end = scan::value(text, at, 0).map_err(|(at, wrong)| failure(text, at, wrong))?;
    let rest = scan::space(text, end);
    if rest < text.len() {
        return Err(failure(text, rest, "more follows the value"));
    }
    if text.get(at) != Some(&b'{') {
        return Err(refused(text, at, end, "an object"));
    }
    Ok(Object { text, at: Some(at) })
}

impl<'a> Object<'a> {
    /// Reports whether there is a member with the key that is not null.
    pub fn has(&self, key: &str) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<String>> {
        let Some(m) = self.get(key)? else { return Ok(None) };
        if m.first() != b'"' {
            return Err(self.refused(&m, "a string"));
        }
        Ok(Some(scan::unquoted(m.raw())))
    }

    /// A string that is one of these values.
    pub fn one_of<'v>(&self, key: &str, values: &[&'v str]) -> Result<Option<&'v str>> {
        let Some(m) = self.get(key)? else { return Ok(None) };
        if m.first() == b'"' {
            let text = scan::unquoted(m.raw());
            if let Some(found) = values.iter().find(|v| **v == text) {
                return Ok(Some(found));
            }
        }
        let (last, before) = values.split_last().unwrap_or((&"", &[]));
        let or = if before.is_empty() { "" } else { " or " };
        Err(self.refused(&m, &[&before.join(", "), or, last].concat()))
    }

    /// A whole number within a range, written in digits alone.
    pub fn int(&self, key: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        let Some(m) = self.get(key)? else { return Ok(None) };
        match codec::text(m.raw()).parse() {
            Ok(n) if range.contains(&n) => Ok(Some(n)),
            _ => {
                let (least, most) = (range.start().to_string(), range.end().to_string());
                Err(self.refused(&m, &["a whole number from ", &least, " to ", &most].concat()))
            }
        }
    }

    /// `true` or `false`.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        let Some(m) = self.get(key)? else { return Ok(None) };
        match m.raw() {
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            _ => Err(self.refused(&m, "true or false")),
        }
    }

    /// What `parse` makes of a string, or of a number as it is written, such as
    /// [`quantity::value`](crate::quantity::value). Its error becomes the member's.
    pub fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        let Some(m) = self.get(key)? else { return Ok(None) };
        let text = match m.first() {
            b'"' => scan::unquoted(m.raw()),
            b'{' | b'[' | b't' | b'f' => return Err(self.refused(&m, "a string or a number")),
            _ => codec::text(m.raw()),
        };
        parse(&text).map(Some).map_err(|e| failure(self.text, m.at, &e.to_string()))
    }

    /// An object within the object. It is not there if the member is not.
    pub fn object(&self, key: &str) -> Result<Object<'a>> {
        match self.get(key)? {
            None => Ok(Object { text: self.text, at: None }),
            Some(m) if m.first() == b'{' => Ok(Object { text: self.text, at: Some(m.at) }),
            Some(m) => Err(self.refused(&m, "an object")),
        }
    }

    /// A list of strings, empty if it is not there.
    pub fn texts(&self, key: &str) -> Result<Vec<String>> {
        self.elements(key, b'"', "a string", |m| scan::unquoted(m.raw()))
    }

    /// A list of objects, empty if it is not there.
    pub fn objects(&self, key: &str) -> Result<Vec<Object<'a>>> {
        let text = self.text;
        self.elements(key, b'{', "an object", |m| Object { text, at: Some(m.at) })
    }

    /// The keys of the object, in their order.
    pub fn keys(&self) -> Vec<String> {
        self.members().map(|m| m.key()).collect()
    }

    /// The members of the object, all of which must be strings, in one pass. A key that occurs
    /// twice comes twice.
    pub fn text_members(&self) -> Result<Vec<(String, String)>> {
        self.each(b'"', "a string", |m| scan::unquoted(m.raw()))
    }

    /// The members of the object, all of which must be objects, in one pass. A key that occurs
    /// twice comes twice.
    pub fn object_members(&self) -> Result<Vec<(String, Object<'a>)>> {
        let text = self.text;
        self.each(b'{', "an object", |m| Object { text, at: Some(m.at) })
    }

    /// The members that are not null, all of which must begin with one character.
    fn each<T>(&self, first: u8, what: &str, make: impl Fn(&Member<'a>) -> T) -> Result<Vec<(String, T)>> {
        let mut all = Vec::new();
        for m in self.members().filter(|m| m.first() != b'n') {
            if m.first() != first {
                return Err(self.refused(&m, what));
            }
            all.push((m.key(), make(&m)));
        }
        Ok(all)
    }

    /// An error of a member, in the plugin's own words; of the object itself if the key is "".
    pub fn fail(&self, key: &str, message: &str) -> Error {
        match (self.find(key), self.at) {
            (Err(e), _) => e,
            (Ok(Some(m)), _) => failure(self.text, m.at, message),
            (Ok(None), Some(at)) if key.is_empty() => failure(self.text, at, message),
            (Ok(None), Some(at)) => failure(self.text, at, &[key, ": ", message].concat()),
            (Ok(None), None) if key.is_empty() => message.into(),
            (Ok(None), None) => [key, ": ", message].concat().into(),
        }
    }

    fn members(&self) -> Cursor<'a> {
        match self.at {
            Some(at) => Cursor::enter(self.text, at),
            None => Cursor::enter(b"{", 0),
        }
    }

    /// The member with a key. Two with one key are an error.
    fn find(&self, key: &str) -> Result<Option<Member<'a>>> {
        let mut all = self.members().filter(|m| m.key() == key);
        let found = all.next();
        match all.next() {
            Some(second) => Err(failure(self.text, second.key_at, "the key occurs twice")),
            None => Ok(found),
        }
    }

    fn get(&self, key: &str) -> Result<Option<Member<'a>>> {
        Ok(self.find(key)?.filter(|m| m.raw() != b"null"))
    }

    fn refused(&self, m: &Member<'_>, want: &str) -> Error {
        refused(self.text, m.at, m.end, want)
    }

    /// The elements of a list, all of which must begin with one character.
    fn elements<T>(&self, key: &str, first: u8, what: &str, each: impl Fn(Member<'a>) -> T) -> Result<Vec<T>> {
        let Some(list) = self.get(key)? else { return Ok(Vec::new()) };
        if list.first() != b'[' {
            return Err(self.refused(&list, "a list"));
        }
        let mut all = Vec::new();
        for m in Cursor::enter(self.text, list.at) {
            if m.first() != first {
                return Err(self.refused(&m, what));
            }
            all.push(each(m));
        }
        Ok(all)
    }
}

#[cold]
fn failure(text: &[u8], at: usize, message: &str) -> Error {
    let path = scan::path_to(text, at);
    let between = if path.is_empty() { "" } else { " at " };
    Error::new([&path, between, "byte ", &at.to_string(), ": ", message].concat())
}

/// How many bytes of a value an error shows.
const SHOWN: usize = 64;

#[cold]
fn refused(text: &[u8], at: usize, end: usize, want: &str) -> Error {
    let mut shown = text.get(at..end).unwrap_or_default();
    let mut more = "";
    if let (Some(head), true) = (shown.get(..SHOWN), shown.len() > SHOWN) {
        let cut = (0..=SHOWN).rev().find(|i| shown.get(*i).is_some_and(|b| b & 0xc0 != 0x80));
        (shown, more) = (head.get(..cut.unwrap_or(0)).unwrap_or_default(), "...");
    }
    failure(text, at, &[&codec::text(shown), more, " is not ", want].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity;
    use crate::test::value::Value;
    use crate::test::vectors;

    fn shown<T: ToString>(value: Result<Option<T>>) -> Result<String> {
        Ok(value?.map_or("-".into(), |v| v.to_string()))
    }

    fn read(text: &str, r: &Value) -> Result<String> {
        let text_of = |name: &str| r.get(name).and_then(Value::as_str).unwrap_or("");
        let number = |name: &str| r.get(name).and_then(Value::as_i64).unwrap_or(0);
        let (inside, key) = (text_of("in"), text_of("key"));
        let mut o = parse(text)?;
        if !inside.is_empty() {
            o = o.object(inside)?;
        }
        match text_of("get") {
            "text" => shown(o.text(key)),
            "one_of" => {
                let values: Vec<_> = r.get("values").unwrap().elements().iter().filter_map(Value::as_str).collect();
                shown(o.one_of(key, &values))
            }
            "int" => shown(o.int(key, number("least")..=number("most"))),
            "parsed" => shown(o.parsed(key, quantity::value)),
            "bool" => shown(o.bool(key)),
            "has" => Ok(o.has(key)?.to_string()),
            "object" if o.keys().iter().any(|k| k == key) => Ok(o.object(key)?.keys().join("|")),
            "object" => Ok("-".into()),
            "keys" => Ok(o.keys().join("|")),
            "text_members" => {
                let all: Vec<_> = o.object(key)?.text_members()?.iter().map(|(k, v)| [k, "=", v].concat()).collect();
                Ok(all.join("|"))
            }
            "object_members" => {
                let all = o.object(key)?.object_members()?;
                let all: Vec<_> = all.iter().map(|(k, o)| [k, "=", &o.keys().join(",")].concat()).collect();
                Ok(all.join("|"))
            }
            "texts" => Ok(o.texts(key)?.join("|")),
            "objects" => Ok(o.objects(key)?.len().to_string()),
            "fail" => Err(o.fail(key, "is wrong")),
            other => panic!("unknown getter {other:?}"),
        }
    }

    #[test]
    fn vectors() {
        vectors::each("json", |v| {
            let text = v.get("text").and_then(Value::as_str).unwrap();
            vectors::compare(v, "", parse(text).map(|_| String::new()));
            for r in v.get("reads").map_or(&[][..], Value::elements) {
                let is = r.get("is").and_then(Value::as_str).unwrap_or("");
                vectors::compare(r, is, read(text, r));
            }
        });
    }

    #[test]
    fn objects_in_a_list() {
        let o = parse(r#"{"rules": [{"n": 1}, {"n": {"m": "x"}}]}"#).unwrap();
        let rules = o.objects("rules").unwrap();
        assert_eq!(rules[0].int("n", 0..=9), Ok(Some(1)));
        let wrong = rules[1].object("n").unwrap().int("m", 0..=9).unwrap_err();
        assert_eq!(wrong.to_string(), r#"rules[1].n.m at byte 33: "x" is not a whole number from 0 to 9"#);
    }
}
