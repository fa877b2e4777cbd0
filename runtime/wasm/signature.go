package wasm

import (
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
)

// signature is the type of a function. Its strings hold one byte for each value,
// as WebAssembly encodes value types, so that == compares types.
type signature struct{ params, results string }

// valueNames are the value types that may occur in a module.
var valueNames = [256]string{
	api.ValueTypeI32: "i32",
	api.ValueTypeI64: "i64",
	api.ValueTypeF32: "f32",
	api.ValueTypeF64: "f64",
}

// String returns the type in the notation of the ABI's documents, such as
// "(i32, i64) -> i32".
func (s signature) String() string {
	text := "(" + valueList(s.params) + ")"
	if s.results != "" {
		text += " -> " + valueList(s.results)
	}
	return text
}

func valueList(types string) string {
	names := make([]string, len(types))
	for i := range types {
		names[i] = valueNames[types[i]]
	}
	return strings.Join(names, ", ")
}

// signatureOf turns a row of the ABI's table into a type.
func signatureOf(f abi.Function) signature {
	return signature{valueString(f.Params), valueString(f.Results)}
}

func valueString(types []abi.ValueType) string {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = api.ValueTypeI32
		if t == abi.I64 {
			b[i] = api.ValueTypeI64
		}
	}
	return string(b)
}
