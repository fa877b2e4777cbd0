//! Places of values in a text of JSON.

// It goes by bytes: slices of str bring along 3 KB of code for their panics.

use crate::codec;

/// How deep values may be nested.
const DEPTH: usize = 64;

/// Where a text is no JSON, and in which way.
type Wrong = (usize, &'static str);

/// Where the value at `i` ends.
pub fn value(text: &[u8], i: usize, depth: usize) -> Result<usize, Wrong> {
    match peek(text, i) {
        b'{' | b'[' => return nested(text, i, depth),
        b'"' => return quoted(text, i),
        b'-' | b'0'..=b'9' => return number(text, i),
        _ => {}
    }
    let rest = text.get(i..).unwrap_or_default();
    let word = [&b"true"[..], b"false", b"null"].into_iter().find(|w| rest.starts_with(w));
    word.map(|w| i + w.len()).ok_or((i, "a value is missing"))
}

/// The same for an object or a list.
fn nested(text: &[u8], i: usize, depth: usize) -> Result<usize, Wrong> {
    if depth == DEPTH {
        return Err((i, "the value is nested too deeply"));
    }
    let object = peek(text, i) == b'{';
    let (closing, missing) = if object { (b'}', "a comma or } is missing") } else { (b']', "a comma or ] is missing") };
    let mut i = space(text, i + 1);
    if peek(text, i) == closing {
        return Ok(i + 1);
    }
    loop {
        if object {
            i = keyed(text, i)?;
        }
        i = space(text, value(text, i, depth + 1)?);
        match peek(text, i) {
            b',' => i = space(text, i + 1),
            c if c == closing => return Ok(i + 1),
            _ => return Err((i, missing)),
        }
    }
}

/// Where the value of the member at `i` begins.
fn keyed(text: &[u8], i: usize) -> Result<usize, Wrong> {
    if peek(text, i) != b'"' {
        return Err((i, "a key in quotes is missing"));
    }
    let i = space(text, quoted(text, i)?);
    if peek(text, i) != b':' {
        return Err((i, "a colon is missing"));
    }
    Ok(space(text, i + 1))
}

fn quoted(text: &[u8], i: usize) -> Result<usize, Wrong> {
    let mut i = i + 1;
    while let Some(&c) = text.get(i) {
        match c {
            b'"' => return Ok(i + 1),
            0..=0x1f => return Err((i, "a control character is in a string")),
            b'\\' => match escape(text.get(i..).unwrap_or_default()) {
                0 => return Err((i, "an escape in a string is wrong")),
                n => i += n,
            },
            _ => i += 1,
        }
    }
    Err((i, "a string does not end"))
}

/// How many bytes the escape has that a text begins with, 0 if it is none.
fn escape(text: &[u8]) -> usize {
    match peek(text, 1) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
        b'u' if hex(text).is_some() => 6,
        _ => 0,
    }
}

/// The number of `\uXXXX`, if the text begins with it.
fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |n, c| Some(n << 4 | (*c as char).to_digit(16)?))
}

fn number(text: &[u8], start: usize) -> Result<usize, Wrong> {
    let first = start + usize::from(peek(text, start) == b'-');
    let mut i = digits(text, first);
    let mut good = i > first && (peek(text, first) != b'0' || i == first + 1);
    if peek(text, i) == b'.' {
        let begin = i + 1;
        i = digits(text, begin);
        good &= i > begin;
    }
    if peek(text, i) | 0x20 == b'e' {
        let begin = i + 1 + usize::from(matches!(peek(text, i + 1), b'+' | b'-'));
        i = digits(text, begin);
        good &= i > begin;
    }
    if good { Ok(i) } else { Err((start, "a number is not as JSON has it")) }
}

fn digits(text: &[u8], mut i: usize) -> usize {
    while peek(text, i).is_ascii_digit() {
        i += 1;
    }
    i
}

/// Passes white space.
pub fn space(text: &[u8], mut i: usize) -> usize {
    while matches!(peek(text, i), b' ' | b'\t' | b'\n' | b'\r') {
        i += 1;
    }
    i
}

/// A byte, 0 behind the end.
fn peek(text: &[u8], i: usize) -> u8 {
    text.get(i).copied().unwrap_or(0)
}

/// A member of an object or an element of a list: the places of its parts.
pub struct Member<'a> {
    text: &'a [u8],
    /// The quote before its key; the same as `at` for an element.
    pub key_at: usize,
    /// Where its value begins.
    pub at: usize,
    /// Where its value ends.
    pub end: usize,
    broken: bool, // the value is no JSON, and end is where
}

impl<'a> Member<'a> {
    /// The value as it stands.
    pub fn raw(&self) -> &'a [u8] {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    /// The first byte of the value.
    pub fn first(&self) -> u8 {
        peek(self.text, self.at)
    }

    pub fn key(&self) -> String {
        let end = quoted(self.text, self.key_at).unwrap_or(self.key_at);
        unquoted(self.text.get(self.key_at..end).unwrap_or_default())
    }

    fn holds(&self, at: usize) -> bool {
        at < self.end || self.broken && at == self.end
    }
}

/// Goes through an object or a list. In a text that is no JSON the last member ends where it is wrong.
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    object: bool,
}

impl<'a> Cursor<'a> {
    pub fn enter(text: &'a [u8], at: usize) -> Self {
        Cursor { text, at: space(text, at + 1), object: peek(text, at) == b'{' }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let (text, key_at) = (self.text, self.at);
        let at = if self.object { keyed(text, key_at).ok()? } else { key_at };
        if matches!(peek(text, at), 0 | b']') {
            return None;
        }
        let end = value(text, at, 0);
        self.at = text.len();
        if let Ok(end) = end {
            let comma = space(text, end);
            if peek(text, comma) == b',' {
                self.at = space(text, comma + 1);
            }
        }
        let broken = end.is_err();
        Some(Member { text, key_at, at, end: end.unwrap_or_else(|(at, _)| at), broken })
    }
}

/// The keys and numbers of what is around a place in a text, such as `rules[1].name`.
#[cold]
pub fn path_to(text: &[u8], to: usize) -> String {
    let mut path = String::new();
    let mut i = space(text, 0);
    while i < to && matches!(peek(text, i), b'{' | b'[') {
        let object = peek(text, i) == b'{';
        let found = Cursor::enter(text, i).enumerate().find(|(_, m)| m.holds(to));
        let Some((n, m)) = found.filter(|(_, m)| m.key_at <= to) else { break };
        if object {
            let between = if path.is_empty() { "" } else { "." };
            path = [&path, between, &m.key()].concat();
        } else {
            path = [&path, "[", &n.to_string(), "]"].concat();
        }
        if to < m.at {
            break;
        }
        i = m.at;
    }
    path
}

/// The text of a string that is JSON. Half of a surrogate pair becomes U+FFFD.
pub fn unquoted(raw: &[u8]) -> String {
    let mut rest = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if !rest.contains(&b'\\') {
        return codec::text(rest);
    }
    let mut out = Vec::with_capacity(rest.len());
    while let [c, tail @ ..] = rest {
        if *c != b'\\' {
            out.push(*c);
            rest = tail;
            continue;
        }
        let (c, size) = escaped(rest);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = rest.get(size..).unwrap_or_default();
    }
    codec::string(out)
}

/// The character of an escape that a text begins with, and how many bytes it is written with.
fn escaped(text: &[u8]) -> (char, usize) {
    let c = match peek(text, 1) {
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        c => c as char,
    };
    (c, 2)
}

fn unicode(text: &[u8]) -> (char, usize) {
    let high = hex(text).unwrap_or(0);
    let low = text.get(6..).and_then(hex).unwrap_or(0);
    if high >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10 {
        let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(c).unwrap_or('\u{fffd}'), 12);
    }
    (char::from_u32(high).unwrap_or('\u{fffd}'), 6)
}
