use wasmproxy::Result;
use wasmproxy::json::Value;

use crate::glob;

/// The configuration: rules in their order.
pub struct Defaults(Vec<Rule>);

struct Rule {
    namespaces: Vec<String>, // globs
    annotations: Vec<(String, String)>,
}

impl Defaults {
    /// The annotations of a namespace. Where two rules name the same one, the first counts.
    pub fn of(&self, namespace: &str) -> Vec<(&str, &str)> {
        let rules = self.0.iter().filter(|r| r.namespaces.iter().any(|g| glob::matches(g, namespace)));
        let mut all: Vec<(&str, &str)> = Vec::new();
        for (key, value) in rules.flat_map(|r| &r.annotations) {
            if !all.iter().any(|(k, _)| k == key) {
                all.push((key, value));
            }
        }
        all
    }
}

/// Reads a configuration that fulfils schema.json. Without one there are no defaults.
pub fn parse(config: &str) -> Result<Defaults> {
    if config.is_empty() {
        return Ok(Defaults(Vec::new()));
    }
    let config = Value::parse(config)?;
    let rules = config.get("defaults").map_or(&[][..], Value::elements);
    Ok(Defaults(rules.iter().map(rule).collect::<Result<_>>()?))
}

fn rule(value: &Value) -> Result<Rule> {
    let namespaces = value.get("namespaces").map_or(&[][..], Value::elements).iter().map(namespace);
    let annotations = value.get("annotations").map_or(&[][..], Value::members).iter();
    Ok(Rule {
        namespaces: namespaces.collect::<Result<_>>()?,
        annotations: annotations.map(|(key, value)| annotation(key, value)).collect::<Result<_>>()?,
    })
}

fn namespace(value: &Value) -> Result<String> {
    let glob = value.as_str().ok_or("namespaces: not a list of strings")?;
    if !glob::is_valid(glob) {
        return Err(["namespaces: \"", glob, "\" has a [ that does not end"].concat().into());
    }
    Ok(glob.into())
}

fn annotation(key: &str, value: &Value) -> Result<(String, String)> {
    if key.is_empty() || key.starts_with("io.kubernetes.") {
        return Err(["annotations: \"", key, "\" is not a plugin's to set"].concat().into());
    }
    let value = value.as_str().ok_or_else(|| ["annotations: ", key, " is not a string"].concat())?;
    Ok((key.into(), value.into()))
}
