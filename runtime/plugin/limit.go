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
	OfAll   func(*abi.Limits) *int64 // of a limit of Tick, that of all hooks, which holds where it is 0 itself; nil of others
}

// Limits is the table of limits, in the order of abi.Limits.
var Limits = []Limit{
	{"fuel", "limits.fuel", "max-plugin-fuel", MaxFuel, fuel, nil},
	{"memory", "limits.memory", "max-plugin-memory", MaxMemory, func(l *abi.Limits) *int64 { return &l.Memory }, nil},
	{"time_ms", "timeout", "max-plugin-timeout", MaxTimeout.Milliseconds(), timeMS, nil},
	{"host_calls", "limits.host-calls", "max-plugin-host-calls", MaxHostCalls, hostCalls, nil},
	{"tick_host_calls", "limits.tick-host-calls", "max-plugin-host-calls", MaxHostCalls, func(l *abi.Limits) *int64 { return &l.TickHostCalls }, hostCalls},
	{"tick_fuel", "limits.tick-fuel", "max-plugin-fuel", MaxFuel, func(l *abi.Limits) *int64 { return &l.TickFuel }, fuel},
	{"tick_time_ms", "tick-timeout", "max-plugin-timeout", MaxTimeout.Milliseconds(), func(l *abi.Limits) *int64 { return &l.TickTimeMS }, timeMS},
}

func fuel(l *abi.Limits) *int64      { return &l.Fuel }
func timeMS(l *abi.Limits) *int64    { return &l.TimeMS }
func hostCalls(l *abi.Limits) *int64 { return &l.HostCalls }

// Value is what limits say of this one.
func (l Limit) Value(of *abi.Limits) int64 {
	if v := *l.Of(of); v != 0 || l.OfAll == nil {
		return v
	}
	return *l.OfAll(of)
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
