package wasm

import (
	"encoding/binary"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	wasmbinary "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// Embed returns the inspected module with its manifest as its first section, where the
// manifest can be read although the module cannot be loaded. It returns the module itself if its
// manifest is not that of a function.
func (in *Inspection) Embed(module []byte) []byte {
	if in.ManifestSource != "export" || len(in.ManifestJSON) == 0 {
		return module
	}
	const header = len(wasmbinary.Magic)
	section := append(sizedBytes([]byte(abi.ManifestSection)), in.ManifestJSON...)
	return slices.Concat(module[:header], []byte{wasmbinary.CustomSection}, sizedBytes(section), module[header:])
}

// sizedBytes is b with its length before it.
func sizedBytes(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
