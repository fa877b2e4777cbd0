package slots

import (
	"cmp"
	"context"
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
	called      *plugin.Shadow // how calls are shown to it, if it is a shadow; nil until it is active

	synchronized *intercept.Synchronized // what its present description's generation knows of pods

	cancel    func() // ends what is under way for it; nil if nothing is
	stopTicks func() // ends its ticks; nil if it has none
	announced bool   // the log has that it is loaded
}

// slot is the place of one plugin, from when its files are there until they go. Its methods are for the goroutine of its
// owner's run.
type slot struct {
	owner       *Slots
	id          string
	description registry.Description // of the files as they are now; it may have a Problem
	bad         time.Time            // since when it has one
	good        *lastgood.Version    // the version that was active last, maybe in an earlier process; nil: there was none
	active      *version             // nil: there is none
	last        *version             // of good, to be active until next is; nil once one of them is active
	next        *version             // as the files said when they were good last; nil if that is active
	nextFirst   bool                 // next is loaded before last, which may have crashed an earlier process
	persistent  loader.Persistent
	shadow      *version           // beside the active version, which calls are shown and which changes nothing; nil: there is none
	judging     string             // the generation of its files that is on probation and judged again and again
	warned      []observe.Event    // the warnings that were reported
	met         status.PluginState // by calls, in the current generation
	since       time.Time          // of met

	refusal *loader.Refusal // in chains while the plugin is not loaded
}

func newSlot(owner *Slots, id string) *slot {
	return &slot{owner: owner, id: id, since: time.Now(), persistent: loader.NewPersistent(), refusal: loader.NewRefusal(id)}
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

// restore has the last good version loaded.
func (p *slot) restore() {
	p.last = p.version(p.owner.lastGood.Copy(p.good.Description))
	p.last.good = true
}

// wasActive reports whether the last good version was made from the same: only settings differ that need no load.
func (p *slot) wasActive(d registry.Description) bool {
	return p.good != nil && d.Problem == nil && p.good.Description.Source() == d.Source()
}

// isGood reports whether these are the files of the last good version, whatever their shadow.
func (p *slot) isGood(d registry.Description) bool {
	return p.good != nil && p.good.Description.File == d.File && p.good.Description.Generation() == d.Generation()
}

// version makes a version that is to be loaded.
func (p *slot) version(d registry.Description) *version {
	v := &version{description: d, source: d.Source(), since: time.Now(), synchronized: intercept.NewSynchronized()}
	if d.Policy == plugin.Fail {
		v.static = p.owner.loader.Static(d)
	}
	return v
}

// describe notes what the files say, and since when they are bad.
func (p *slot) note(d registry.Description) {
	if d.Problem != nil && p.description.Problem == nil {
		p.bad = time.Now()
	}
	p.description = d
}

// describe takes the description of one plugin. A load that is under way, or has failed,
// stays valid as long as the module and settings are the same. Files that are bad change nothing.
func (p *slot) describe(ctx context.Context, d registry.Description) {
	p.note(d)
	if p.owner.bypassed {
		return
	}
	if p.active == nil && p.last == nil && p.next == nil { // at a start, or after a bypass
		if p.good != nil && !p.good.Description.Disabled && !p.wasActive(d) { // the files have changed in what needs a load
			p.restore()
			t := p.owner.trials.Get(d.ID, d.Generation())
			p.nextFirst = p.owner.crashed || t != nil && !t.Ends.IsZero() // calls have met the version that is on probation
		}
	}
	if d.Problem != nil {
		return
	}
	from := d.Source()
	switch {
	case p.active != nil && p.active.source == from:
		p.next.discard()
		p.next = nil
		if p.active.description.Same(d) {
			p.remember(ctx) // files that could not be loaded may have ended its probation, and these begin one
		} else {
			p.share(ctx, d)
		}
	case p.next != nil && p.next.source == from:
		was := p.next.synchronized
		p.next.describe(d)
		if p.next.synchronized != was && p.next.loaded != nil && p.next.state == loading { // it is being told of pods, which begins anew
			p.next.cancel()
			p.next.become(ready)
		}
		if d.Policy == plugin.Fail && len(p.next.static.Hooks) == 0 {
			p.next.static = p.owner.loader.Static(d)
		}
	default:
		p.next.discard()
		p.refusal.Set(nil)
		p.next = p.version(d)
		p.next.good = p.wasActive(d)
	}
}

// member returns the slot's place in the chain. There is none if the plugin is not loaded and calls pass
// without it.
func (p *slot) member() (m loader.Member, ok bool) {
	switch {
	case p.active != nil:
		m = p.owner.loader.Member(p.active.description, p.active.loaded, p.active.synchronized)
		if p.shadow != nil && p.shadow.called != nil {
			m.Shadow, m.LoadedShadow = p.shadow.called, p.shadow.loaded
		}
		return m, true
	case p.refuses():
		return p.owner.loader.Refusing(p.refusal, p.awaited().description, p.awaited().static), true
	}
	return m, false
}

// state is what calls meet of the plugin.
func (p *slot) state() status.PluginState {
	switch {
	case p.owner.bypassed:
		return status.Bypassed
	case p.active != nil:
		return status.Active
	case p.refuses():
		return status.Refusing
	}
	return status.Inactive
}
