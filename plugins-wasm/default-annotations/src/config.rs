use wasmproxy::json::{self, Object};
use wasmproxy::{Result, glob};

/// The configuration: rules in their order.
pub struct Defaults(Vec<Rule>);

struct Rule {
    namespaces: Vec<String>, // globs, as in a match
    annotations: Vec<(String, String)>,
}

impl Defaults {
    /// The annotations of a namespace. Where two rules name the same one, the first counts.
    pub fn of(&self, namespace: &str) -> Vec<(&str, &str)> {
        let rules = self.0.iter().filter(|r| glob::accepts(&r.namespaces, namespace));
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
    let rules = json::parse(config)?.objects("defaults")?;
    Ok(Defaults(rules.iter().map(rule).collect::<Result<_>>()?))
}

fn rule(settings: &Object<'_>) -> Result<Rule> {
    let namespaces = settings.texts("namespaces")?;
    if let Some(wrong) = namespaces.iter().find(|g| !glob::valid(g)) {
        return Err(settings.fail("namespaces", &["\"", wrong, "\" is not a glob"].concat()));
    }
    let annotations = settings.object("annotations")?;
    let pairs = annotations.text_members()?;
    if let Some((key, _)) = pairs.iter().find(|(key, _)| key.is_empty() || key.starts_with("io.kubernetes.")) {
        return Err(annotations.fail(key, &["\"", key, "\" is not a plugin's to set"].concat()));
    }
    Ok(Rule { namespaces, annotations: pairs })
}
