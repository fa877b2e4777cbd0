package daemon

import (
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// state is how far a version of a plugin has come.
type state uint8

const (
	queued   state = iota // it waits until it can be loaded
	loading               // it is read, compiled and configured, or told of the pods
	ready                 // it is loaded, and becomes active once the store is filled
	failed                // it cannot be loaded, for the version's reason
	active                // calls go to it
	draining              // another version replaced it; calls that began earlier may still use it
	closed                // it is not needed any more
)

// String returns the state in lower case.
func (s state) String() string {
	return [...]string{"queued", "loading", "ready", "failed", "active", "draining", "closed"}[s]
}

// version is a plugin as its files describe it at one time.
type version struct {
	description registry.Description
	source      string // what it is made from; equal sources make equal versions
	state       state
	since       time.Time // of state
	lane        lane
	reason      error         // of its last failure; nil if it never failed
	backoff     time.Duration // until a failed one is loaded again
	took        time.Duration // to load it and to tell it of pods
	synced      bool          // with the pods that are older than it
	loaded      *loaded       // nil until it is loaded
	cancel      func()        // ends what is under way for it; nil if nothing is
	stopTicks   func()        // ends its ticks; nil if it has none
	announced   bool          // the log has that it is loaded
}

// slot is the place of one plugin, from when its files are there until they go.
type slot struct {
	id          string
	description registry.Description // of the files as they are now
	active      *version             // nil: there is none
	next        *version             // nil: the active one is as the files say
	before      string               // source of the version that was active last, maybe in an earlier process; "": not known
	persistent  persistent
	warned      []observe.Event    // the warnings that were reported
	met         status.PluginState // by calls, in the current generation
	since       time.Time          // of met

	notLoaded *notLoaded
	refusal   *loaded      // notLoaded, as a chain has it
	static    abi.Manifest // as far as it can be told without loading the module; for a slot that refuses
}

func newSlot(id string) *slot {
	a := &notLoaded{id: id}
	return &slot{id: id, since: time.Now(), persistent: newPersistent(), notLoaded: a, refusal: &loaded{Plugin: a, refCounted: newRefCounted(func() {})}}
}

// become puts the version into another state.
func (v *version) become(s state) {
	v.state, v.since = s, time.Now()
}

// refuses reports whether calls are refused because the plugin is not loaded.
func (p *slot) refuses() bool {
	return p.active == nil && p.description.Policy == plugin.Fail && refusedHooks(p.description, p.static) != 0
}

// retry makes a version that has failed wait for its next load, or synchronization.
func (v *version) retry() {
	if v.state == failed && v.loaded != nil {
		v.become(ready)
	} else if v.state == failed {
		v.become(queued)
	}
}
