package wasm

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// signature is the type of a function.
type signature = binary.Signature

// signatureOf turns a row of the ABI's table into a type. 0 is no result.
func signatureOf(params []abi.ValueType, result abi.ValueType) signature {
	s := signature{Params: valueString(params)}
	if result != 0 {
		s.Results = valueString([]abi.ValueType{result})
	}
	return s
}

func valueString(types []abi.ValueType) string {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = binary.I32
		if t == abi.I64 {
			b[i] = binary.I64
		}
	}
	return string(b)
}
