// Package plugins holds the plugins that ship with the proxy, built, so that
// the program carries them. Their sources are in the folders beside it.
package plugins

import _ "embed"

// Audit is the plugin of folder audit.
//
//go:embed audit/audit.wasm
var Audit []byte

// CPUBurst is the plugin of folder cpu-burst.
//
//go:embed cpu-burst/cpu-burst.wasm
var CPUBurst []byte

// CPUNormalization is the plugin of folder cpu-normalization.
//
//go:embed cpu-normalization/cpu-normalization.wasm
var CPUNormalization []byte

// DefaultAnnotations is the plugin of folder default-annotations.
//
//go:embed default-annotations/default-annotations.wasm
var DefaultAnnotations []byte

// ExecGuard is the plugin of folder exec-guard.
//
//go:embed exec-guard/exec-guard.wasm
var ExecGuard []byte

// ImagePolicy is the plugin of folder image-policy.
//
//go:embed image-policy/image-policy.wasm
var ImagePolicy []byte

// Koordlet is the plugin of folder koordlet.
//
//go:embed koordlet/koordlet.wasm
var Koordlet []byte

// MemoryQoS is the plugin of folder memory-qos.
//
//go:embed memory-qos/memory-qos.wasm
var MemoryQoS []byte

// QoS is the plugin of folder qos.
//
//go:embed qos/qos.wasm
var QoS []byte
