package fuel

import (
	"math"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// custom keeps the names of functions, for stack traces. What other custom sections
// say of code is no longer true. One that is wrong is left out: it does not make the
// module wrong.
func (w *rewriter) custom(r *binary.Reader) {
	if string(r.Name()) != "name" || w.next == 0 {
		return
	}
	names := writer{}
	const functions = 1
	for r.Len() > 0 {
		kind, content := r.Byte(), r.Sub()
		if kind == functions {
			names = w.names(&content)
		}
	}
	if r.Err() != nil || len(names.b) == 0 {
		return
	}
	content := writer{}
	content.name("name")
	content.byte(functions)
	content.sized(names.b)
	w.emit(binary.CustomSection, content)
}

// names moves the functions that have a name, or returns nothing if the names are wrong.
func (w *rewriter) names(r *binary.Reader) writer {
	out := writer{}
	n := r.Count("names", math.MaxInt)
	out.u32(uint32(n))
	for range n {
		w.functionIndex(r, &out)
		out.name(string(r.Name()))
	}
	if r.End(); r.Err() != nil {
		return writer{}
	}
	return out
}
