package slots

import (
	"cmp"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
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

// version is a plugin as its files described it at one time: its code and all its settings. It becomes active
// as a whole. Files that are bad are no version.
type version struct {
	description registry.Description
	good        bool         // it was active before, maybe in an earlier process
	static      abi.Manifest // as far as it can be told without loading the module; for a policy of Fail
	source      string       // what it is made from; equal sources make equal versions
	state       state
	since       time.Time // of state
	lane        lane
	reason      error          // of its last failure; nil if it never failed
	failedSince time.Time      // when it failed first
	backoff     time.Duration  // until a failed one is loaded again
	took        time.Duration  // to load it and to tell it of pods
	synced      bool           // with the pods that are older than it
	loaded      *loader.Loaded // nil until it is loaded

	synchronized *intercept.Synchronized // what its present description's generation knows of pods

	cancel    func() // ends what is under way for it; nil if nothing is
	stopTicks func() // ends its ticks; nil if it has none
	announced bool   // the log has that it is loaded
}

// slot is the place of one plugin, from when its files are there until they go.
type slot struct {
	id          string
	description registry.Description // of the files as they are now; it may have a Problem
	bad         time.Time            // since when it has one
	good        *lastgood.Version    // the version that was active last, maybe in an earlier process; nil: there was none
	active      *version             // nil: there is none
	last        *version             // of good, to be active until next is; nil once one of them is active
	next        *version             // as the files said when they were good last; nil if that is active
	nextFirst   bool                 // next is loaded before last, which may have crashed an earlier process
	persistent  loader.Persistent
	shadow      *shadow            // of the active version; nil: there is none
	judging     string             // the generation of its files that is on probation and judged again and again
	warned      []observe.Event    // the warnings that were reported
	met         status.PluginState // by calls, in the current generation
	since       time.Time          // of met

	refusal *loader.Refusal // in chains while the plugin is not loaded
}

func newSlot(id string) *slot {
	return &slot{id: id, since: time.Now(), persistent: loader.NewPersistent(), refusal: loader.NewRefusal(id)}
}

// describe gives the version the files as they are now, from which it differs in nothing that a load needs. They are
// another generation, which knows no pod.
func (v *version) describe(d registry.Description) {
	if d.Generation() != v.description.Generation() {
		v.synchronized, v.synced = intercept.NewSynchronized(), false
	}
	v.description = d
}

// become puts the version into another state.
func (v *version) become(s state) {
	v.state, v.since = s, time.Now()
}

// awaited is the version whose policy counts while none is active: the last good one, else the first one, until
// its load has failed. nil: there is none.
func (p *slot) awaited() *version {
	switch {
	case p.active != nil:
		return nil
	case p.last != nil:
		return p.last
	case p.next != nil && (p.next.good || p.next.reason == nil):
		return p.next
	}
	return nil
}

// refuses reports whether calls are refused because the plugin is not loaded.
func (p *slot) refuses() bool {
	v := p.awaited()
	return v != nil && v.description.Policy == plugin.Fail && loader.RefusedHooks(v.description, v.static) != 0
}

// loads returns the version that is to be loaded now: the last good one goes first, unless it may have crashed an
// earlier process. nil: there is none.
func (p *slot) loads() *version {
	first, second := p.last, p.next
	if p.nextFirst {
		first, second = second, first
	}
	if first != nil && (second == nil || first.state != failed) {
		return first
	}
	return second
}

// shown is the description that stands for the plugin: of what is active, or is to be, also after a bypass.
func (p *slot) shown() registry.Description {
	for _, v := range []*version{p.active, p.last, p.next} {
		if v != nil {
			return v.description
		}
	}
	if p.description.Problem != nil && p.good != nil {
		return p.good.Description
	}
	return p.description
}

// compareSlots orders slots as the chain calls them.
func compareSlots(a, b *slot) int {
	return cmp.Or(cmp.Compare(cmp.Or(a.shown().Order, a.id), cmp.Or(b.shown().Order, b.id)), cmp.Compare(a.id, b.id))
}

// retry makes a version that has failed wait for its next load, or synchronization.
func (v *version) retry() {
	if v.state == failed && v.loaded != nil {
		v.become(ready)
	} else if v.state == failed {
		v.become(queued)
	}
}
