//! Globs with the meaning that they have in the operator's match: `*` stands for any run of
//! characters but `/`, `?` for one of them, `[a-z]` for one of a class and `[^a-z]` for one
//! that is not; `\` takes the next character as it is.
//!
//! ```
//! use wasmproxy::glob;
//!
//! assert!(glob::accepts(&["prod-*", "!prod-test"], "prod-eu"));
//! ```
//!
//! It knows neither `**` nor `{a,b}`.

/// Reports whether a list of globs accepts a name, as a list in the operator's match does:
/// one glob matches, and none of those that begin with `!` does. A list of such globs alone
/// accepts all other names; an empty list accepts everything.
pub fn accepts<T: AsRef<str>>(globs: &[T], name: &str) -> bool {
    let (mut within, mut wanted) = (false, false);
    for glob in globs {
        match glob.as_ref().strip_prefix('!') {
            Some(glob) if matches(glob, name) => return false,
            Some(_) => {}
            None => (within, wanted) = (within || matches(glob.as_ref(), name), true),
        }
    }
    within || !wanted
}

/// Reports whether a glob matches a whole name. One that is not [valid] matches
/// nothing. It goes back no further than to the last `*`, so that no glob takes long.
pub fn matches(glob: &str, name: &str) -> bool {
    if !valid(glob) {
        return false;
    }
    let (mut glob, mut name) = (glob.as_bytes(), name.as_bytes());
    let mut star = None; // what follows the last *, and what it has not taken yet
    loop {
        match (glob, name) {
            ([], []) => return true,
            ([b'*', rest @ ..], _) => {
                star = Some((rest, name));
                glob = rest;
                continue;
            }
            ([_, ..], [_, ..]) => {
                if let Some(rest) = one(glob, name) {
                    (glob, name) = rest;
                    continue;
                }
            }
            _ => {}
        }
        let Some((rest, [taken, tail @ ..])) = star else { return false };
        if *taken == b'/' {
            return false;
        }
        star = Some((rest, tail));
        (glob, name) = (rest, tail);
    }
}

/// Reports whether a text is a glob: each class ends and has a character, and a `\` comes
/// before something.
pub fn valid(glob: &str) -> bool {
    let mut rest = glob.as_bytes();
    loop {
        rest = match rest {
            [] => return true,
            [b'\\'] => return false,
            [b'\\', _, tail @ ..] => tail,
            [b'[', tail @ ..] => match class(tail, 0) {
                Some((_, tail)) => tail,
                None => return false,
            },
            [_, tail @ ..] => tail,
        };
    }
}

/// What follows the first element of a glob, and what it takes of the name, if it matches.
fn one<'a>(glob: &'a [u8], name: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    match (glob, name) {
        ([b'?', ..], [b'/', ..]) => None,
        ([b'?', rest @ ..], _) => Some((rest, character(name)?.1)),
        ([b'[', rest @ ..], _) => {
            let (c, tail) = character(name)?;
            class(rest, c).filter(|(fits, _)| *fits).map(|(_, rest)| (rest, tail))
        }
        ([b'\\', b, rest @ ..], [c, tail @ ..]) => (b == c).then_some((rest, tail)),
        ([b, rest @ ..], [c, tail @ ..]) => (b == c).then_some((rest, tail)),
        _ => None,
    }
}

/// Whether a class has the character, and what follows it; `None` if it is none.
fn class(glob: &[u8], c: u32) -> Option<(bool, &[u8])> {
    let (not, mut rest) = match glob {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, glob),
    };
    let mut found = false;
    let mut first = true;
    loop {
        if let (false, [b']', rest @ ..]) = (first, rest) {
            return Some((found != not, rest));
        }
        first = false;
        let low;
        (low, rest) = member(rest)?;
        let mut high = low;
        if let [b'-', tail @ ..] = rest {
            (high, rest) = member(tail)?;
        }
        found |= (low..=high).contains(&c);
    }
}

/// The first character of a class, and what follows it, if anything does.
fn member(class: &[u8]) -> Option<(u32, &[u8])> {
    let class = match class {
        [b'-' | b']', ..] => return None,
        [b'\\', rest @ ..] => rest,
        _ => class,
    };
    character(class).filter(|(_, rest)| !rest.is_empty())
}

/// The first character of a text, and what follows it. A byte that is no character stands for
/// U+FFFD: a star may have ended within one.
fn character(text: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = text.split_first()?;
    let more = match first {
        0..=0x7f => return Some((u32::from(*first), rest)),
        0xc2..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf4 => 3,
        _ => return Some((0xfffd, rest)),
    };
    let Some((tail, after)) = rest.split_at_checked(more) else { return Some((0xfffd, rest)) };
    let head = u32::from(first & (0x3f >> more));
    Some((tail.iter().fold(head, |c, b| c << 6 | u32::from(b & 0x3f)), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::value::Value;
    use crate::test::vectors;

    #[test]
    fn vectors() {
        vectors::each("glob", |v| {
            let globs: Vec<_> = v.get("globs").unwrap().elements().iter().filter_map(Value::as_str).collect();
            let name = v.get("name").and_then(Value::as_str).unwrap_or("");
            assert_eq!(accepts(&globs, name), v.get("accepts").is_some(), "{v:?}");
            let valid = globs.iter().all(|g| valid(g.strip_prefix('!').unwrap_or(g)));
            assert_eq!(valid, v.get("invalid").is_none(), "{v:?}");
        });
    }

    #[test]
    fn no_glob_takes_long() {
        assert!(!matches(&"*a".repeat(1000), &"a".repeat(999)));
    }
}
