// Package rust carries the sources of the Rust SDK, so that a plugin can be begun without
// the network. Its tests run the crate's own tests and linters, and plugins that it builds
// in the proxy's own engine.
package rust

import "embed"

// Files is the crate: Cargo.toml, the sources, and the examples that Cargo.toml names.
//
//go:embed Cargo.toml README.md src examples/*.rs
var Files embed.FS
