package plugin

import (
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The most that an operator can allow one call of a plugin, and one instance of it.
const (
	MaxTimeout   = time.Minute // half of what kubelet waits for a call
	MaxFuel      = 10_000_000_000
	MaxMemory    = 1 << 30 // bytes
	MaxHostCalls = 100_000
)

// Limit is a row of the table of limits.
type Limit struct {
	Key string // of the manifest
	Max int64
	Of  func(*abi.Limits) *int64
}

// Limits is the table of limits, in the order of abi.Limits.
var Limits = []Limit{
	{"fuel", MaxFuel, func(l *abi.Limits) *int64 { return &l.Fuel }},
	{"memory", MaxMemory, func(l *abi.Limits) *int64 { return &l.Memory }},
	{"time_ms", MaxTimeout.Milliseconds(), func(l *abi.Limits) *int64 { return &l.TimeMS }},
	{"host_calls", MaxHostCalls, func(l *abi.Limits) *int64 { return &l.HostCalls }},
}
