// Package wasmproxy holds the sources of the SDKs, so that the program can write
// them beside a new plugin, which then builds without a network. It is at the top of
// the repository because a package embeds only what is beneath it, and package sdk
// must not carry itself into every plugin.
package wasmproxy

import "embed"

// SDK is what plugins are built from: abi and sdk for Go, sdk/rust and sdk/c, with their
// tests, and the license of all.
//
//go:embed LICENSE abi/*.go sdk/*.go sdk/fixture/*.go sdk/internal/native/*.go sdk/sdktest/*.go sdk/rust/Cargo.toml sdk/rust/src sdk/c/wasmproxy.h
var SDK embed.FS
