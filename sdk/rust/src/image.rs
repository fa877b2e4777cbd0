//! Names of images, as Docker, containerd and kubelet read them: `nginx` is
//! `docker.io/library/nginx:latest`. The rules are those of github.com/distribution/reference.
//!
//! ```
//! use wasmproxy::image;
//!
//! let image = image::parse("nginx")?;
//! assert_eq!(image.registry, "docker.io");
//! assert_eq!(image.to_string(), "docker.io/library/nginx:latest");
//! # Ok::<(), wasmproxy::Error>(())
//! ```
//!
//! It does not know what a runtime makes of a short name: CRI-O looks it up in
//! registries.conf. See [`Reference::short`].

use std::fmt;

use crate::{Error, Result};

/// A name of an image, with what was left out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// With its port; `docker.io` if there is none.
    pub registry: String,
    /// `library/` and the name, for a name without a path of docker.io.
    pub repository: String,
    /// `latest` if there is neither tag nor digest, "" if there is a digest alone.
    pub tag: String,
    /// Such as `sha256:aaaa…`, "" if there is none.
    pub digest: String,
    /// The name has no registry.
    pub short: bool,
}

impl Reference {
    /// The registry and the repository.
    pub fn name(&self) -> String {
        [&self.registry, "/", &self.repository].concat()
    }
}

impl fmt::Display for Reference {
    /// The whole reference.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        for (before, part) in [(":", &self.tag), ("@", &self.digest)] {
            if !part.is_empty() {
                f.write_str(before)?;
                f.write_str(part)?;
            }
        }
        Ok(())
    }
}

/// How many bytes a repository has at most.
const MAX_REPOSITORY: usize = 255;

/// Takes a name apart. An image's id is none: see [`is_id`].
pub fn parse(name: &str) -> Result<Reference> {
    if is_id(name) {
        return Err(wrong(name, "it is an image's id"));
    }
    let (rest, digest) = name.split_once('@').map_or((name, None), |(rest, digest)| (rest, Some(digest)));
    if digest.is_some_and(|d| !is_digest(d)) {
        return Err(wrong(name, "its digest is not sha256:, sha384: or sha512: and hexadecimal digits of that length"));
    }
    let (path, tag) =
        rest.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or((rest, None), |(p, t)| (p, Some(t)));
    if tag.is_some_and(|t| !is_tag(t.as_bytes())) {
        return Err(wrong(
            name,
            "its tag is not 1 to 128 letters, digits, _, . and -, without . or - at its beginning",
        ));
    }
    let host = path.split_once('/').filter(|(host, _)| is_host(host));
    let (registry, repository) = host.unwrap_or(("docker.io", path));
    let registry = if registry == "index.docker.io" { "docker.io" } else { registry };
    let official = registry == "docker.io" && !repository.contains('/');
    let repository = [if official { "library/" } else { "" }, repository].concat();
    if !is_registry(registry.as_bytes()) {
        return Err(wrong(name, "its registry is not a host with an optional port"));
    }
    if !is_repository(repository.as_bytes()) {
        return Err(wrong(name, "its repository is not small letters and digits, with /, ., _, __ or - between them"));
    }
    if repository.len() > MAX_REPOSITORY {
        return Err(wrong(name, "its repository has more than 255 bytes"));
    }
    let usual = if digest.is_some() { "" } else { "latest" };
    Ok(Reference {
        registry: registry.into(),
        repository,
        tag: tag.unwrap_or(usual).into(),
        digest: digest.unwrap_or_default().into(),
        short: host.is_none(),
    })
}

#[cold]
fn wrong(name: &str, why: &str) -> Error {
    Error::new(["\"", name, "\" is not the name of an image: ", why].concat())
}

/// What is before the first slash is a registry if it cannot be part of a path.
fn is_host(text: &str) -> bool {
    text == "localhost" || text.bytes().any(|c| matches!(c, b'.' | b':' | b'A'..=b'Z'))
}

/// Names, addresses, and addresses of IPv6 in brackets, with a port or without.
fn is_registry(text: &[u8]) -> bool {
    if let [b'[', rest @ ..] = text {
        let end = rest.iter().position(|c| *c == b']').unwrap_or(0);
        let Some((address, [_, port @ ..])) = rest.split_at_checked(end) else { return false };
        return end > 0 && address.iter().all(|c| *c == b':' || c.is_ascii_hexdigit()) && is_port(port);
    }
    let end = text.iter().position(|c| *c == b':').unwrap_or(text.len());
    let Some((host, port)) = text.split_at_checked(end) else { return false };
    is_port(port) && host.split(|c| *c == b'.').all(is_label)
}

/// A part of a host's name.
fn is_label(text: &[u8]) -> bool {
    let ends = [text.first(), text.last()].into_iter().all(|c| c.is_some_and(u8::is_ascii_alphanumeric));
    ends && text.iter().all(|c| *c == b'-' || c.is_ascii_alphanumeric())
}

/// Nothing, or a port after a colon.
fn is_port(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b':', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Small letters and digits, with one /, ., _ or __, or any number of -, between them.
fn is_repository(text: &[u8]) -> bool {
    let word = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends = [text.first(), text.last()].into_iter().all(|c| c.is_some_and(word));
    ends && text
        .split(word)
        .all(|between| matches!(between, b"" | b"/" | b"." | b"_" | b"__") || between.iter().all(|c| *c == b'-'))
}

fn is_tag(text: &[u8]) -> bool {
    let word = |c: &u8| *c == b'_' || c.is_ascii_alphanumeric();
    let more = |c: &u8| matches!(c, b'.' | b'-') || word(c);
    text.len() <= 128 && text.first().is_some_and(word) && text.iter().all(more)
}

fn is_digest(text: &str) -> bool {
    let algorithms = [("sha256:", 64), ("sha384:", 96), ("sha512:", 128)];
    algorithms.iter().any(|(name, digits)| text.strip_prefix(name).is_some_and(|d| d.len() == *digits && is_hex(d)))
}

/// Reports whether a name is an image's id, which a user may write for an image that is there:
/// 64 hexadecimal digits, or a digest.
pub fn is_id(name: &str) -> bool {
    is_digest(name) || name.len() == 64 && is_hex(name)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::value::Value;
    use crate::test::vectors;

    #[test]
    fn vectors() {
        vectors::each("image", |v| {
            let text = |key: &str| v.get(key).and_then(Value::as_str).unwrap_or("");
            let fields = |r: &Reference| [&r.registry, &r.repository, &r.tag, &r.digest].map(String::clone).join(" ");
            let is = ["registry", "repository", "tag", "digest"].map(text).join(" ");
            let got = parse(text("name"));
            if let Ok(r) = &got {
                assert_eq!(r.short, v.get("short").is_some(), "{v:?}");
                let again = parse(&r.to_string()).unwrap();
                assert_eq!((fields(&again), again.short), (fields(r), false), "{v:?}");
            }
            vectors::compare(v, &is, got.map(|r| fields(&r)));
            assert_eq!(is_id(text("name")), v.get("id").is_some(), "{v:?}");
        });
    }
}
