package wasm

import (
	stdbinary "encoding/binary"
	"fmt"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// globalName is how a module's n-th mutable global is exported.
func globalName(n int) string { return fmt.Sprintf("%sglobal_%d", preflight.ReservedPrefix, n) }

// mutableGlobals returns the indices of a module's own mutable globals. It imports
// none, since no host function is a global.
func mutableGlobals(m *preflight.Outline) []uint32 {
	var mutable []uint32
	for n, g := range m.Globals {
		if g.Mutable {
			mutable = append(mutable, uint32(n))
		}
	}
	return mutable
}

// exportGlobals returns the module with its mutable globals exported, so that they
// can be reset. The guest itself cannot tell. code was scanned and has an export
// section: without it, it were no plugin.
func exportGlobals(code []byte, mutable []uint32) []byte {
	out := make([]byte, 0, len(code)+24*len(mutable)+16)
	out = append(out, binary.Magic...)
	for r := binary.NewReader(code[len(binary.Magic):], len(binary.Magic)); r.Len() > 0; {
		start := r.Offset()
		id, content := r.Byte(), r.Sub()
		if id != binary.ExportSection {
			out = append(out, code[start:r.Offset()]...)
			continue
		}
		exports := withGlobals(&content, mutable)
		out = stdbinary.AppendUvarint(append(out, id), uint64(len(exports)))
		out = append(out, exports...)
	}
	return out
}

// withGlobals adds exports to the content of an export section.
func withGlobals(content *binary.Reader, mutable []uint32) []byte {
	count := uint64(content.U32()) + uint64(len(mutable))
	out := append(stdbinary.AppendUvarint(nil, count), content.Rest()...)
	for n, index := range mutable {
		name := globalName(n)
		out = append(stdbinary.AppendUvarint(out, uint64(len(name))), name...)
		out = stdbinary.AppendUvarint(append(out, binary.KindGlobal), uint64(index))
	}
	return out
}
