package abi

// Manifest is what a plugin says of itself when it is loaded. Its JSON form is
// in the custom section ManifestSection or is returned by wp_manifest.
type Manifest struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Description  string         `json:"description,omitempty"`
	License      string         `json:"license,omitempty"`
	SDK          string         `json:"sdk,omitempty"`          // "go 0.1.0"; for people, not for decisions
	Hooks        []ManifestHook `json:"hooks"`                  // a plugin gets only these
	Capabilities []string       `json:"capabilities,omitempty"` // names; a plugin has at most these
	Limits       Limits         `json:"limits,omitzero"`
	State        string         `json:"state,omitempty"`   // StateNone or StateInstance; "" is StateNone
	TickMS       int64          `json:"tick_ms,omitempty"` // period of Tick in milliseconds, MinTickMS or more; goes with the hook
	// Durable are prefixes of the keys whose values in kv outlive a restart of the proxy; the
	// empty one is that of all keys.
	Durable []string `json:"durable,omitempty"`
	// Optional are names of host functions and hooks that the guest can do without. A hook that the host lacks is
	// never called, and a function answers UNSUPPORTED. Only the manifest of a custom section
	// can say so: the other kind is read by running the guest.
	Optional []string `json:"optional,omitempty"`
	// ConfigSchema is a JSON schema that the operator's config must fulfil before
	// the guest sees it; "" allows anything.
	ConfigSchema string `json:"-"`
}

// ManifestHook is a hook that a plugin wants, by its name, and for which pods and
// containers. In JSON it is an object with the keys hook and match, or the name
// alone.
type ManifestHook struct {
	Hook  string `json:"hook"`
	Match Match  `json:"match,omitzero"`
}

// Limits are what one call of a plugin needs at most. A plugin that asks for more than
// its operator allows is not loaded. 0 is the host's default.
type Limits struct {
	Fuel      int64 `json:"fuel,omitempty"`
	Memory    int64 `json:"memory,omitempty"`     // bytes of one instance
	TimeMS    int64 `json:"time_ms,omitempty"`    // wall time in milliseconds
	HostCalls int64 `json:"host_calls,omitempty"` // also in Tick and Synchronize, unless TickHostCalls is given
	// TickHostCalls are calls of host functions in Tick and Synchronize.
	TickHostCalls int64 `json:"tick_host_calls,omitempty"`
	TickFuel      int64 `json:"tick_fuel,omitempty"`    // of Tick; Fuel if 0 and that is given
	TickTimeMS    int64 `json:"tick_time_ms,omitempty"` // of Tick; TimeMS if 0 and that is given
}

// Modes of a plugin's state.
const (
	StateNone     = "none"     // memory is put back after each call
	StateInstance = "instance" // one instance, which keeps its memory and serves one call at a time
)

// MinTickMS is the shortest period of Tick, in milliseconds.
const MinTickMS = 1000
