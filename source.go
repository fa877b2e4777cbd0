// Package wasmproxy holds the sources of the SDKs, so that the program can write
// them beside a new plugin, which then builds without a network, and what the program
// tests hosts of the ABI with. It is at the top of the repository because a package embeds only what is beneath it, and package sdk
// must not carry itself into every plugin.
package wasmproxy

import "embed"

// SDK is what plugins are built from: abi and sdk for Go, sdk/rust and sdk/c, with their
// tests, and the license of all.
//
//go:embed sdk/glob/*.go sdk/image/*.go sdk/json/*.go sdk/quantity/*.go
//go:embed LICENSE abi/*.go sdk/*.go sdk/fixture/*.go sdk/internal/native/*.go sdk/sdktest/*.go sdk/rust/Cargo.toml sdk/rust/src sdk/c/*.h
var SDK embed.FS

// Conformance is what a host of the ABI is tested with: the vectors of testdata/abi, and the modules that they are for.
//
//go:embed testdata/abi/vectors testdata/abi/samples.json testdata/abi/modules.json testdata/abi/guest/wat/guest.wasm
//go:embed testdata/wat/abi-major.wasm testdata/wat/abi-minor.wasm testdata/wat/abort.wasm testdata/wat/configure-refuse.wasm
//go:embed testdata/wat/configure-trap.wasm testdata/wat/conflict.wasm testdata/wat/exit-0.wasm testdata/wat/fail-silent.wasm
//go:embed testdata/wat/hook-takes-i64.wasm testdata/wat/host-call-flood.wasm testdata/wat/imported-memory.wasm testdata/wat/loop.wasm
//go:embed testdata/wat/manifest-not-json.wasm testdata/wat/manifest-outside.wasm testdata/wat/manifest-unknown-hook.wasm
//go:embed testdata/wat/missing-abi.wasm testdata/wat/missing-hook.wasm testdata/wat/missing-manifest.wasm testdata/wat/no-memory.wasm
//go:embed testdata/wat/nonsense.wasm testdata/wat/noop.wasm testdata/wat/optional.wasm testdata/wat/patient.wasm testdata/wat/quota.wasm
//go:embed testdata/wat/recursion.wasm testdata/wat/reject.wasm testdata/wat/start-trap.wasm testdata/wat/state-across-calls.wasm
//go:embed testdata/wat/trap.wasm testdata/wat/unknown-import.wasm testdata/wat/wrong-signature.wasm
var Conformance embed.FS
