//! The records in which maps and lists cross the border: a u32 of how many, and then each
//! element after its length, in little endian.

/// Cuts records off the front of a dump. What is not a dump ends early.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// A u32, 0 at the end.
    pub fn number(&mut self) -> u32 {
        let Some((head, rest)) = self.0.split_first_chunk() else { return 0 };
        self.0 = rest;
        u32::from_le_bytes(*head)
    }

    /// Bytes that follow their length.
    pub fn counted(&mut self) -> &'a [u8] {
        let n = self.number() as usize;
        let Some((head, rest)) = self.0.split_at_checked(n) else { return &[] };
        self.0 = rest;
        head
    }
}

/// The keys and values of a map's dump.
pub fn entries(dump: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut r = Reader(dump);
    let n = r.number();
    (0..n).map_while(move |_| (!r.0.is_empty()).then(|| (r.counted(), r.counted())))
}

/// The elements of a list's dump.
pub fn elements(dump: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut r = Reader(dump);
    let n = r.number();
    (0..n).map_while(move |_| (!r.0.is_empty()).then(|| r.counted()))
}

/// Text of bytes. CRI's strings are UTF-8; what is not becomes U+FFFD.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same of bytes that nobody else has, without a copy.
pub fn string(bytes: Vec<u8>) -> String {
    let bytes = if bytes.is_ascii() { bytes } else { replaced(bytes) };
    // SAFETY: both are UTF-8.
    unsafe { String::from_utf8_unchecked(bytes) }
}

#[cold]
fn replaced(bytes: Vec<u8>) -> Vec<u8> {
    text(&bytes).into_bytes()
}

/// Writes a u32.
pub fn put_number(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&(n as u32).to_le_bytes());
}

/// Writes bytes after their length.
pub fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Writes a list.
pub fn list<T: AsRef<[u8]>>(elements: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, elements.len());
    for e in elements {
        put(&mut out, e.as_ref());
    }
    out
}

/// Writes entries, and leaves those out whose value is empty.
pub fn record(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, entries.iter().filter(|(_, v)| !v.is_empty()).count());
    for (key, value) in entries.iter().filter(|(_, v)| !v.is_empty()) {
        put(&mut out, key.as_bytes());
        put(&mut out, value.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dump = record(&[("a", "1"), ("b", ""), ("c", "3")]);
        let read: Vec<_> = entries(&dump).collect();
        assert_eq!(read, [(&b"a"[..], &b"1"[..]), (b"c", b"3")]);
        let dump = list(&["x", "", "z"]);
        assert_eq!(elements(&dump).collect::<Vec<_>>(), [&b"x"[..], b"", b"z"]);
    }

    #[test]
    fn what_is_cut_short_ends_early() {
        let dump = list(&["abc", "def"]);
        for n in 0..dump.len() {
            assert!(elements(&dump[..n]).count() <= 2);
            assert!(entries(&dump[..n]).count() <= 2);
        }
        assert_eq!(elements(&[255; 4]).count(), 0);
    }
}
