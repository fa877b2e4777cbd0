// Package wasm runs plugins that are WebAssembly modules. It is the only
// importer of wazero.
//
// A module is scanned before wazero sees it (module.go, check.go), gets a
// runtime of its own with the host functions of abi.Functions (host.go, read.go,
// write.go, output.go) and a small WASI (wasi.go), and serves hooks from a
// bounded pool of instances (guests.go, guest.go). What a guest did wrong
// becomes one printable line (fault.go).
//
// The package knows no CRI message, no file and no failure policy: bytes of a
// module come in, a plugin.Plugin goes out.
//
// Rules that the ABI leaves to the host, and what this host does:
//
//   - A pointer and length that are not inside the guest's memory trap, also
//     where nothing would be read or written. A length of 0 touches no memory.
//   - wp_hook returns 1 without having called reject: a fault. It called reject
//     and returns something else: a fault too, because the guest contradicts
//     itself and neither answer is safe to guess. The text given to fail counts
//     only if the guest returns a negative number.
//   - Before the first event (in _initialize, wp_manifest and wp_configure)
//     reads answer NOT_FOUND, writes READ_ONLY, and the clock stands at 0.
//   - An instance that trapped, exited, ran out of time or may have been closed
//     by wazero is closed and never pooled. One that returned a wrong number
//     has not lost its memory's integrity and is kept.
//
// Time is bounded by wazero's close-on-done (limit.go), which looks at the clock
// where a loop jumps back and nowhere else: a guest that recurses without a loop
// is stopped by its stack only, and while it runs Go's collector waits for it.
package wasm
