//! The plugin of main.go in Rust.

use std::collections::HashMap;
use wasmproxy::{PreCreateContainer, Result};

wasmproxy::plugin! {
    name: "readwrite",
    version: env!("CARGO_PKG_VERSION"),
    needs: [Resources, Annotations],
    on PreCreateContainer(create),
}

fn create(c: &PreCreateContainer) -> Result {
    if c.annotation("example.com/do").as_deref() == Some("work") {
        return c.set_annotation("example.com/found", &work());
    }
    let tier = c.pod().label("tier").unwrap_or_default();
    let (quota, period) = (c.resources().cpu_quota(), c.resources().cpu_period());
    let shares = if c.pod().namespace() == "prod" { 2048 } else { 1024 };
    c.resources().set_cpu_quota(quota.max(period))?;
    c.resources().set_cpu_shares(shares)?;
    c.set_annotation("example.com/tier", &tier)
}

/// Counts a thousand words in a map and returns the first of them, sorted.
fn work() -> String {
    let mut count: HashMap<String, i32> = HashMap::new();
    for i in 0..1000 {
        *count.entry((i * 7919 % 257).to_string()).or_default() += 1;
    }
    let mut words: Vec<_> = count.into_keys().collect();
    words.sort();
    words.swap_remove(0)
}
