//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// The counterpart of export.go for tests of plugins on the machine that
// builds them: package sdktest calls what a guest would export.

func init() {
	native.Guest.Manifest = manifest
	native.Guest.Configure = configure
	native.Guest.Hook = dispatch
}

func host() native.Host {
	if native.Current == nil {
		panic("sdk: a handler runs only while the proxy or package sdktest calls it")
	}
	return native.Current
}

func bytesAt(buf unsafe.Pointer, size int32) []byte { return unsafe.Slice((*byte)(buf), size) }
