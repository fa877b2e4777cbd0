// Package abi defines what the proxy and its plugins say to one another: hooks,
// objects, fields, errors, host functions and guest exports, each in one table.
//
// Host, SDK and the tests of both read these tables; nothing else spells a
// number of the ABI. The language-neutral specification is ABI.md beside this
// file. The package holds no behaviour, imports nothing outside the standard
// library, and compiles under TinyGo, so plugin authors inherit nothing.
//
// From the first release on wp1 is frozen: the tables only grow. A test holds
// them against the dump of version 1.0 in testdata, which is made anew until then.
package abi

// Module is the name of the WebAssembly module that guests import host functions from.
const Module = "wp1"

//go:generate go run ./internal/generate

// Version is the ABI version that this source describes, as wp_abi returns it:
// major<<16 | minor. A host accepts a guest of its own major version.
const Version = Major<<16 | Minor

// Major and Minor are the two halves of Version.
const (
	Major = 1
	Minor = 0
)

// ManifestSection is the custom section that may hold a guest's manifest. It
// wins over the export wp_manifest, and is read without running the guest.
const ManifestSection = "wp.manifest"

// MaxManifest is the largest manifest that a host reads, in bytes.
const MaxManifest = 16 << 10

// MaxEntries is how many entries or elements map_dump and list_dump write at the most, and how many all maps and lists
// of a request may have together for cri_raw. An API server takes no object with more labels or annotations.
const MaxEntries = 100_000
