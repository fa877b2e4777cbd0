package wasm

import (
	stdbinary "encoding/binary"
	"fmt"
	"iter"

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

// startName is how a module's start function is exported.
const startName = preflight.ReservedPrefix + "start"

// expose returns the module with two things of it exported, which the guest cannot tell:
// its mutable globals, so that they can be reset, and in place of a start section the start
// function, so that the host calls it when it can see the guest's fuel and stack. code was
// scanned and has an export section: without it, it were no plugin.
func expose(code []byte, mutable []uint32) []byte {
	hidden := make([]preflight.Export, len(mutable))
	for n, index := range mutable {
		hidden[n] = preflight.Export{Name: globalName(n), Kind: binary.KindGlobal, Index: index}
	}
	for id, section := range sections(code) {
		if id == binary.StartSection {
			r := contentOf(section)
			hidden = append(hidden, preflight.Export{Name: startName, Kind: binary.KindFunction, Index: r.U32()})
		}
	}
	out := append(make([]byte, 0, len(code)+24*len(hidden)+16), binary.Magic...)
	for id, section := range sections(code) {
		switch id {
		case binary.StartSection:
		case binary.ExportSection:
			r := contentOf(section)
			exports := withExports(&r, hidden)
			out = stdbinary.AppendUvarint(append(out, id), uint64(len(exports)))
			out = append(out, exports...)
		default:
			out = append(out, section...)
		}
	}
	return out
}

// sections yields the sections of a module, with their heads.
func sections(code []byte) iter.Seq2[binary.SectionID, []byte] {
	return func(yield func(binary.SectionID, []byte) bool) {
		for r := binary.NewReader(code[len(binary.Magic):], len(binary.Magic)); r.Len() > 0; {
			start := r.Offset()
			id := r.Byte()
			r.Sub()
			if !yield(id, code[start:r.Offset()]) {
				return
			}
		}
	}
}

func contentOf(section []byte) binary.Reader {
	r := binary.NewReader(section[1:], 0)
	return r.Sub()
}

// withExports adds exports to the content of an export section.
func withExports(content *binary.Reader, more []preflight.Export) []byte {
	count := uint64(content.U32()) + uint64(len(more))
	out := append(stdbinary.AppendUvarint(nil, count), content.Rest()...)
	for _, e := range more {
		out = append(stdbinary.AppendUvarint(out, uint64(len(e.Name))), e.Name...)
		out = stdbinary.AppendUvarint(append(out, e.Kind), uint64(e.Index))
	}
	return out
}
