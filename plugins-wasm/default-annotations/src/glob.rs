//! The globs of namespaces, as a manifest's match has them: `*` stands for any run of
//! characters, `?` for one, `[a-z]` for one of a class and `[^a-z]` for one that is not.

/// Reports whether every class has an end.
pub fn is_valid(glob: &str) -> bool {
    let mut rest = glob.as_bytes();
    while let Some((b, tail)) = rest.split_first() {
        rest = match b {
            b'[' => match class(tail, 0) {
                Some((_, tail)) => tail,
                None => return false,
            },
            _ => tail,
        };
    }
    true
}

/// Reports whether a name of ASCII characters matches. It goes back no further than to the
/// last `*`, so that no glob takes long.
pub fn matches(glob: &str, name: &str) -> bool {
    let (mut glob, mut name) = (glob.as_bytes(), name.as_bytes());
    let mut star = None; // what is after it, and what it has not taken yet
    loop {
        match (glob, name) {
            ([], []) => return true,
            ([b'*', rest @ ..], _) => {
                star = Some((rest, name));
                glob = rest;
                continue;
            }
            (_, [c, tail @ ..]) => {
                if let Some(rest) = one(glob, *c) {
                    (glob, name) = (rest, tail);
                    continue;
                }
            }
            _ => {}
        }
        let Some((rest, [_, tail @ ..])) = star else { return false };
        star = Some((rest, tail));
        (glob, name) = (rest, tail);
    }
}

/// The rest of a glob whose first element takes the character.
fn one(glob: &[u8], c: u8) -> Option<&[u8]> {
    match glob {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, c).filter(|(in_it, _)| *in_it).map(|(_, rest)| rest),
        [b, rest @ ..] if *b == c => Some(rest),
        _ => None,
    }
}

/// Whether a class has the character, and what follows it; `None` if it does not end.
fn class(glob: &[u8], c: u8) -> Option<(bool, &[u8])> {
    let (not, mut rest) = match glob {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, glob),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [b']', rest @ ..] => return Some((found != not, rest)),
            [low, b'-', high, rest @ ..] if *high != b']' => {
                found |= (*low..=*high).contains(&c);
                rest
            }
            [b, rest @ ..] => {
                found |= *b == c;
                rest
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, yes, no) in [
            ("prod", "prod", "prod-a"),
            ("*", "anything", "-"),
            ("prod-*", "prod-", "prod"),
            ("*-eu-*", "a-eu-eu-b", "a-eu"),
            ("*a", "aaa", "aab"),
            ("a*b*c", "axxbxxbxxc", "axxbxx"),
            ("v?", "v1", "v12"),
            ("v[0-9]", "v7", "vx"),
            ("v[^0-9]", "vx", "v7"),
            ("[a-]", "-", "b"),
            ("*[0-9]", "team-1", "team"),
        ] {
            assert!(is_valid(glob), "{glob}");
            assert!(matches(glob, yes), "{glob} does not match {yes}");
            assert!(glob == "*" || !matches(glob, no), "{glob} matches {no}");
        }
        assert!(matches("*", "") && !matches("?", "") && matches("", ""));
        for glob in ["[", "a[", "[a-", "[^"] {
            assert!(!is_valid(glob), "{glob}");
            assert!(!matches(glob, "a"), "{glob}");
        }
    }

    #[test]
    fn no_glob_takes_long() {
        assert!(!matches(&"*a".repeat(30), &"a".repeat(29)));
    }
}
