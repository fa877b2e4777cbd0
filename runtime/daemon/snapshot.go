package daemon

import (
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Snapshot is the state of all plugins at one moment, fit to be shown: its texts are
// printable, and it holds no configuration.
type Snapshot struct {
	Generation uint64           `json:"generation"` // counts the sets of active and refusing plugins that calls have met
	Plugins    []PluginSnapshot `json:"plugins"`    // in the order of the chain
}

// PluginState is what calls meet of a plugin.
type PluginState string

// The states of a plugin.
const (
	StateActive   PluginState = "active"   // calls go to it
	StateRefusing PluginState = "refusing" // it is not loaded, and its hooks are refused
	StateInactive PluginState = "inactive" // it is not loaded, and calls pass
	StateBypassed PluginState = "bypassed" // no plugin is loaded while the bypass lasts
)

// PluginSnapshot is the state of one plugin.
type PluginSnapshot struct {
	ID     string      `json:"id"`
	File   string      `json:"file"` // the module, or the JSON file that registers a hook server or names a module
	Kind   string      `json:"kind"` // "wasm" or "hook server"
	State  PluginState `json:"state"`
	Since  time.Time   `json:"since"`           // of State
	Hooks  []string    `json:"hooks,omitempty"` // that it is called in, or that are refused
	Policy string      `json:"failurePolicy"`
	DryRun bool        `json:"dryRun,omitempty"`

	Active  *VersionSnapshot `json:"active,omitempty"`  // nil unless State is StateActive
	Pending *VersionSnapshot `json:"pending,omitempty"` // what the files describe now, if that is not the active version
	Breaker string           `json:"breaker,omitempty"` // closed, open or half-open; empty if the plugin has none
}

// VersionSnapshot is the state of one version of a plugin.
type VersionSnapshot struct {
	Name    string    `json:"name,omitempty"`    // of its manifest; empty if that is not known
	Version string    `json:"version,omitempty"` // likewise
	Digest  string    `json:"digest,omitempty"`  // of the module, SHA-256 in hex; empty for a hook server
	State   string    `json:"state"`             // queued, loading, ready, failed or active
	Since   time.Time `json:"since"`             // of State
	Reason  string    `json:"reason,omitempty"`  // of its last failure
}

// snapshot returns the state at the moment. ok is false if the slots have ended.
func (s *slots) snapshot() (all Snapshot, ok bool) {
	return ask(s, s.look)
}

// look takes the snapshot. It is for the goroutine of run.
func (s *slots) look() Snapshot {
	all := Snapshot{Generation: s.generation}
	for _, p := range s.order {
		d := p.description
		one := PluginSnapshot{
			ID: p.id, File: plugin.Name(d.File), Kind: s.loader.kind(d).name(), State: p.met, Since: p.since,
			Policy: d.Policy.String(), DryRun: d.DryRun, Active: p.active.look(), Pending: p.next.look(),
		}
		if m, there := s.place(p); there {
			one.Hooks = m.Hooks.Names()
			if m.Breaker != nil {
				one.Breaker = m.Breaker.Status().State.String()
			}
		}
		all.Plugins = append(all.Plugins, one)
	}
	return all
}

// look returns nil for no version.
func (v *version) look() *VersionSnapshot {
	if v == nil {
		return nil
	}
	one := &VersionSnapshot{Digest: v.description.Digest, State: v.state.String(), Since: v.since}
	if v.loaded != nil {
		manifest := v.loaded.Manifest()
		one.Name, one.Version = manifest.Name, manifest.Version
	}
	if v.reason != nil {
		one.Reason = v.reason.Error()
	}
	return one
}

// state is what calls meet of the plugin.
func (s *slots) state(p *slot) PluginState {
	switch {
	case s.bypassed:
		return StateBypassed
	case p.active != nil:
		return StateActive
	case p.refuses():
		return StateRefusing
	}
	return StateInactive
}
