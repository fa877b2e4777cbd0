package loader

import (
	"reflect"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Member is a place in the chain and the shared plugin that fills it.
type Member struct {
	plugin.Member
	Loaded       *Loaded
	LoadedShadow *Loaded // the plugin of Shadow; nil if there is none
	Refusing     bool    // the plugin is not loaded, and its hooks are refused
	Always       bool    // it is called after calls that failed, too

	Generation   string                  // of its files
	Synchronized *intercept.Synchronized // what this generation knows of pods; nil of one that refuses
	Time         time.Duration           // limit of one call of it, whoever enforces it
}

// Equal reports whether calls notice no difference between two members.
func (m Member) Equal(o Member) bool {
	switch {
	case m.Loaded != o.Loaded, m.Generation != o.Generation, m.DryRun != o.DryRun, m.Time != o.Time, m.Shadow != o.Shadow,
		m.Policy != o.Policy, m.Timeout != o.Timeout, m.Hooks != o.Hooks, m.Capabilities != o.Capabilities:
		return false
	}
	return reflect.DeepEqual(m.Match, o.Match) && reflect.DeepEqual(m.Rights.Bounds, o.Rights.Bounds)
}

// Synchronizes reports whether Synchronize of the member's plugin is called for older pods.
func (m Member) Synchronizes() bool {
	return m.Synchronized != nil && m.Hooks.Has(abi.Synchronize)
}

// Tripped reports whether the plugin's breaker lets no call through.
func (m Member) Tripped() bool {
	if m.Breaker == nil {
		return false
	}
	status := m.Breaker.Status()
	return status.State != plugin.Closed && time.Now().Before(status.Until)
}
