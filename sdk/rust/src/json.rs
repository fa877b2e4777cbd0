//! A small reader of JSON, for configurations: a plugin that needs no more of it need not
//! have a dependency. It keeps the order of members, and the last one of a name counts.

use crate::{Error, Result, codec};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Reads a text that is one value. An error says at which byte it is wrong.
    pub fn parse(text: &str) -> Result<Value> {
        let mut p = Parser { text: text.as_bytes(), at: 0 };
        let value = p.value(0)?;
        p.space();
        if p.at < text.len() {
            return Err(p.error("more after the value"));
        }
        Ok(value)
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

/// How deep values may be nested.
const DEPTH: usize = 64;

// It goes by bytes: slices of str bring along 3 KB of code for their panics.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> Error {
        Error::new(["JSON, byte ", &self.at.to_string(), ": ", what].concat())
    }

    fn peek(&self) -> u8 {
        *self.text.get(self.at).unwrap_or(&0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Takes a word if it comes next.
    fn take(&mut self, word: &str) -> bool {
        let there = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        if there {
            self.at += word.len();
        }
        there
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.space();
        match self.peek() {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number(),
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ => Err(self.error("no value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        let mut members = Vec::new();
        self.sequence(b'}', |p| {
            p.space();
            let name = p.string()?;
            p.space();
            if !p.take(":") {
                return Err(p.error("no colon"));
            }
            members.push((name, p.value(depth + 1)?));
            Ok(())
        })?;
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        let mut elements = Vec::new();
        self.sequence(b']', |p| {
            elements.push(p.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Value::Array(elements))
    }

    /// Reads what is between a bracket and its end, with commas between.
    fn sequence(&mut self, end: u8, mut each: impl FnMut(&mut Self) -> Result) -> Result {
        self.at += 1;
        self.space();
        let mut first = true;
        while self.peek() != end || !first {
            first = false;
            each(self)?;
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b if b == end => break,
                _ => return Err(self.error("neither a comma nor the end")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        self.take("-");
        let whole = self.digits();
        let leading = whole > 1 && self.text.get(self.at - whole) == Some(&b'0');
        let mut good = whole > 0 && !leading;
        if self.take(".") {
            good &= self.digits() > 0;
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            good &= self.digits() > 0;
        }
        if !good {
            return Err(self.error("no number"));
        }
        Ok(Value::Number(codec::text(self.text.get(start..self.at).unwrap_or_default())))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String> {
        if !self.take("\"") {
            return Err(self.error("no string"));
        }
        let mut out = Vec::new();
        loop {
            let Some(&b) = self.text.get(self.at) else { return Err(self.error("a string without an end")) };
            self.at += 1;
            match b {
                b'"' => return Ok(codec::text(&out)),
                b'\\' => out.extend_from_slice(self.escape()?.encode_utf8(&mut [0; 4]).as_bytes()),
                0..=0x1f => return Err(self.error("a control character in a string")),
                _ => out.push(b),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let c = self.peek();
        self.at += usize::from(c.is_ascii() && c != 0);
        Ok(match c {
            b'"' | b'\\' | b'/' => c as char,
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.error("no escape")),
        })
    }

    /// The rest of `\uXXXX`, of which two may be a pair. Half of a pair is U+FFFD.
    fn unicode(&mut self) -> Result<char> {
        let high = self.hex()?;
        let back = self.at;
        if (0xd800..0xdc00).contains(&high) && self.take("\\u") {
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(c).unwrap_or('\u{fffd}'));
            }
            self.at = back;
        }
        Ok(char::from_u32(high).unwrap_or('\u{fffd}'))
    }

    fn hex(&mut self) -> Result<u32> {
        let mut n = 0;
        for _ in 0..4 {
            let digit = (self.peek() as char).to_digit(16);
            n = n << 4 | digit.ok_or_else(|| self.error("no hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_everything() {
        let v = Value::parse(r#" {"a": [1, -2.5e3, true, false, null, ""], "b": {"c": "x\n\u00e9\ud83d\ude00\ud83dy"}, "a2": {}, "b": []} "#).unwrap();
        assert_eq!(v.get("a").unwrap().elements().len(), 6);
        assert_eq!(v.get("a").unwrap().elements()[0].as_i64(), Some(1));
        assert_eq!(v.get("a").unwrap().elements()[1], Value::Number("-2.5e3".into()));
        assert_eq!(v.get("b").unwrap(), &Value::Array(vec![]));
        assert_eq!(v.members()[1].1.get("c").unwrap().as_str(), Some("x\n\u{e9}\u{1f600}\u{fffd}y"));
    }

    #[test]
    fn refuses_what_is_no_json() {
        for text in [
            "", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "01", "1.", "-", "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "\"\\",
            "nul", "1 2", "[1 2]", "'a'", "\"é", "[\"\\u+123\"]", "[1é]",
        ] {
            assert!(Value::parse(text).is_err(), "{text:?} was read");
        }
        assert!(Value::parse(&"[".repeat(100_000)).is_err());
        assert_eq!(Value::parse("{\"a\": x}").unwrap_err().to_string(), "JSON, byte 6: no value");
    }
}
