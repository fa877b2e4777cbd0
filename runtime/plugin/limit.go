package plugin

import (
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The most that an operator can allow one call of a plugin, and one instance of it.
const (
	MaxTimeout   = time.Minute           // half of what kubelet waits for a call
	MaxFuel      = 1_000_000_000_000_000 // more than a guest uses in MaxTimeout on any machine: its time alone ends it
	MaxMemory    = 1 << 30               // bytes
	MaxHostCalls = 100_000
)

// Limit is a row of the table of limits.
type Limit struct {
	Key     string // of the manifest, in limits
	File    string // key of the plugin's JSON
	Setting string // what a manifest may ask for if the plugin's JSON does not say
	Max     int64
	Of      func(*abi.Limits) *int64
}

// Limits is the table of limits, in the order of abi.Limits.
var Limits = []Limit{
	{"fuel", "limits.fuel", "max-plugin-fuel", MaxFuel, func(l *abi.Limits) *int64 { return &l.Fuel }},
	{"memory", "limits.memory", "max-plugin-memory", MaxMemory, func(l *abi.Limits) *int64 { return &l.Memory }},
	{"time_ms", "timeout", "max-plugin-timeout", MaxTimeout.Milliseconds(), func(l *abi.Limits) *int64 { return &l.TimeMS }},
	{"host_calls", "limits.host-calls", "max-plugin-host-calls", MaxHostCalls, func(l *abi.Limits) *int64 { return &l.HostCalls }},
	{"tick_host_calls", "limits.tick-host-calls", "max-plugin-host-calls", MaxHostCalls, func(l *abi.Limits) *int64 { return &l.TickHostCalls }},
	{"tick_fuel", "limits.tick-fuel", "max-plugin-fuel", MaxFuel, func(l *abi.Limits) *int64 { return &l.TickFuel }},
	{"tick_time_ms", "tick-timeout", "max-plugin-timeout", MaxTimeout.Milliseconds(), func(l *abi.Limits) *int64 { return &l.TickTimeMS }},
}

// Overrun is the error of a manifest that asks for more of a limit than it may have.
// inFile says that the maximum is that of the plugin's JSON.
func (l Limit) Overrun(asked, most int64, inFile bool) error {
	remedy := fmt.Sprintf("raise the setting %s, or set %s in the plugin's JSON", l.Setting, l.File)
	switch {
	case asked > l.Max:
		most, remedy = l.Max, "no setting allows more"
	case inFile:
		remedy = fmt.Sprintf("raise %s in the plugin's JSON", l.File)
	}
	return fmt.Errorf("manifest: limits.%s is %d, above the maximum of %d: %s", l.Key, asked, most, remedy)
}
