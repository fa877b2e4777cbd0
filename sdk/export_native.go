//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// The counterpart of export.go for tests of plugins on the machine that
// builds them: package sdktest calls what a guest would export.

func init() {
	native.Guest.Declared = plugin.manifest.Declared
	native.Guest.Hooks = func() (hooks abi.HookSet) {
		for _, h := range plugin.handlers {
			hooks |= abi.HookSetOf(h.hook)
		}
		return hooks
	}
	native.Guest.Configure = configure
	native.Guest.Hook = dispatch
}
