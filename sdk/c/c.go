// Package c carries the C header, so that a plugin can be begun without the network. Its
// tests compile the header, and run plugins that are built with it in the proxy's own
// engine.
package c

import _ "embed"

// Header is wasmproxy.h.
//
//go:embed wasmproxy.h
var Header []byte
