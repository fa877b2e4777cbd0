// Package plugins holds the plugins that ship with the proxy, built, so that
// the program carries them. Their sources are in the folders beside it.
package plugins

import _ "embed"

// QoS is the plugin of folder qos.
//
//go:embed qos/qos.wasm
var QoS []byte
