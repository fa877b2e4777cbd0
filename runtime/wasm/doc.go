// Package wasm runs plugins that are WebAssembly modules. It is the only
// importer of wazero.
//
// A module is scanned before wazero sees it (load.go, check.go), gets a
// runtime of its own with the host functions of abi.Functions (host.go, read.go,
// write.go, own.go, output.go) and a small WASI (wasi.go), agrees with its manifest
// on capabilities, limits and config (negotiate.go), and serves hooks from a
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
//     A function whose capability the plugin has not looks at no argument.
//   - wp_hook returns 1 without having called reject: a fault. It called reject
//     and returns something else: a fault too, because the guest contradicts
//     itself and neither answer is safe to guess. The text given to fail counts
//     only if the guest returns a negative number.
//   - Before the first event (in _initialize, wp_manifest and wp_configure)
//     reads answer NOT_FOUND, writes READ_ONLY, and the clock stands at 0.
//     kv can be read, and metric works. Until its manifest is known, a guest has
//     no capability.
//   - What a call writes with kv counts when wp_hook has returned 0.
//   - A plugin with state "instance" has one instance, which keeps its memory until
//     it traps or is ended: then another takes its place.
//   - An instance of any other plugin is restored after each call to what it was before its first event,
//     whatever the call did; one that cannot be is replaced.
//
// A guest pays for what it runs, with fuel that package fuel makes it count (meter.go).
// When a slice of it is spent, some milliseconds at the most, and at each sixteenth call of a host
// function, the host looks at the clock and at the caller.
package wasm
