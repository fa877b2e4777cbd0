// Package native joins package sdk and package sdktest when a plugin is built
// for the machine that tests it, where there is no WebAssembly host to import
// functions from. Builds to WebAssembly do not contain it.
package native

import "github.com/wasmproxy/wasmproxy/abi"

// Guest is a plugin's exports, set by package sdk.
var Guest struct {
	Manifest  func() []byte
	Configure func() int32
	Hook      func(abi.Hook) int32
}

// Current is the host of the call that runs, nil between calls. Whoever sets it
// sees to it that calls do not overlap, as they never do in one guest.
var Current Host
