package preflight

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// soundNames reports whether a name section is as the specification says, so
// that wazero reads no further than its end and allocates no more than it holds.
func soundNames(b []byte) bool {
	const moduleName, functionNames, localNames = 0, 1, 2
	r := binary.NewReader(b, 0)
	for r.Len() > 0 {
		kind, inner := r.Byte(), r.Sub()
		switch kind {
		case moduleName:
			inner.Name()
		case functionNames:
			passNames(&inner)
		case localNames:
			for range inner.Count("functions", maxNames) {
				inner.U32()
				passNames(&inner)
			}
		default:
			inner = binary.Reader{}
		}
		inner.End()
		if r.Err() != nil || inner.Err() != nil {
			return false
		}
	}
	return true
}

func passNames(r *binary.Reader) {
	for range r.Count("names", maxNames) {
		r.U32()
		r.Name()
	}
}
