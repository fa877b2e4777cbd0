// Package slots has plugins go from their files to calls: it loads what the files say, has each new plugin told of the pods,
// and publishes a generation, with which new calls are intercepted. It keeps the last good version while files are bad, and
// takes all plugins out of the way in a bypass. How a plugin is made is for package loader, and what a generation does with
// a call is for package intercept.
package slots

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/durable"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// Slots hold the plugins that the files describe, one slot for each id. They belong to the
// goroutine of run, to which the watcher posts new descriptions, and a load its result. It
// never waits for a plugin, a compiler or the backend, so that a change of the files counts
// at once. Their exported methods are safe for concurrent use.
type Slots struct {
	Bypass  *Bypass
	Shadows *Shadows

	config     *config.Config
	observer   observe.Observer
	loader     *loader.Loader
	reconciler *reconcile.Reconciler
	durable    *durable.Store    // values that plugins keep
	lastGood   *lastgood.Saver   // versions of plugins
	trials     *probation.Trials // of new versions
	counts     func(id string) probation.Counts
	watcher    *registry.Watcher // of the plugins' files

	firstSyncTime time.Duration // of Synchronize before a plugin is active
	generations   generations
	ticks         ticks
	files         atomic.Pointer[registry.List] // of plugins, as they are now; never nil

	events chan func(context.Context)
	ended  chan struct{}  // closed when run has ended
	begun  chan struct{}  // closed when each plugin of the start is active, or cannot be loaded
	jobs   sync.WaitGroup // loads, introductions and fills that are under way

	all     map[string]*slot
	order   []*slot                     // all of them, in the order of the chain
	off     map[string]*slot            // plugins that are switched off
	good    map[string]lastgood.Version // of an earlier process, by ids of plugins that have no slot yet
	crashed bool                        // the earlier process did, soon after its start
	busy    [lanes]int                  // loads that are under way
	store   following
	fills   int // how often one was begun

	bypassed bool // plugins are not loaded, whatever the files say
	complete bool // the files of all plugins are known

	published  []loader.Member // those of the current generation
	changed    bool            // something happened since that members may come of
	generation uint64          // counts the published sets that differ from the one before
}

// lane is where a load waits for its turn. Each has as many at a time as modules are
// compiled at a time.
type lane uint8

const (
	light lane = iota // what is not compiled: hook servers, and modules whose code is in the cache
	heavy             // what is
	lanes
)

// run serves events until ctx is done. Several that wait are one change.
func (s *Slots) run(ctx context.Context) {
	defer close(s.ended)
	for {
		select {
		case event := <-s.events:
			event(ctx)
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			select {
			case event := <-s.events:
				event(ctx)
			default:
				more = false
			}
		}
		s.reconcile(ctx)
	}
}

// post has the event run by the owner of the slots. It reports false if that has ended.
func (s *Slots) post(event func(context.Context)) bool {
	select {
	case s.events <- event:
		return true
	case <-s.ended:
		return false
	}
}

// reconcile makes loaded plugins active, begins the loads for which there is room, and
// publishes a generation if the set of active or refusing plugins has changed.
func (s *Slots) reconcile(ctx context.Context) {
	if s.changed { // what is promoted may be told of pods
		s.tellPresent()
	}
	for _, p := range s.order {
		for _, v := range []*version{p.last, p.next} {
			if v != nil && v.state == ready && s.store == filled {
				s.promote(ctx, p, v)
			}
		}
	}
	waits := false
	for l := light; l < lanes && !waits; l++ { // compiled code goes first
		for _, p := range s.order {
			switch v := p.loads(); {
			case v == nil || v.state != queued || v.lane != l:
			case s.busy[l] == wasm.Compilers() || l == heavy && s.compiles(v.description.Digest):
				waits = true
			default:
				s.load(ctx, p, v)
			}
		}
	}
	for _, p := range s.order {
		s.Shadows.follow(ctx, p)
	}
	s.publish(ctx)
	select {
	case <-s.begun:
	default:
		if !s.awaits() {
			close(s.begun)
		}
	}
}

// awaits reports whether a plugin is on its way to be active.
func (s *Slots) awaits() bool {
	return slices.ContainsFunc(s.order, func(p *slot) bool { return p.loads() != nil && p.loads().state != failed })
}

// update takes the list of the files as they are now.
func (s *Slots) update(ctx context.Context, list registry.List) {
	s.changed, s.complete = true, list.Complete
	forget(list, s.lastGood, s.durable)
	gone, off := s.all, s.off
	s.all, s.order, s.off = make(map[string]*slot, len(list.Plugins)), nil, map[string]*slot{}
	for _, d := range list.Plugins {
		if d.Disabled {
			s.switchOff(off[d.ID], d)
			continue
		}
		p := gone[d.ID]
		if p == nil {
			p = newSlot(d.ID)
			s.durable.Restore(ctx, d.ID, p.persistent.Values)
			if good, known := s.good[d.ID]; known {
				p.good = &good
			}
		}
		delete(gone, d.ID)
		delete(s.good, d.ID)
		s.all[d.ID], s.order = p, append(s.order, p)
		s.describe(ctx, p, judged(s.trials, d))
	}
	if list.Complete {
		s.good = nil
	}
	for _, p := range gone {
		s.unload(p)
		s.observer.Observe(ctx, &observe.PluginRemoved{Plugin: p.id, Disabled: s.off[p.id] != nil})
	}
}

// switchOff notes a plugin that is switched off, also while its files are bad: the last good ones say so.
func (s *Slots) switchOff(p *slot, d registry.Description) {
	if p == nil {
		p = newSlot(d.ID)
		p.met = status.Disabled
	}
	p.describe(d)
	if d.Problem == nil && (p.good == nil || !p.good.Description.Same(d)) {
		p.good = &lastgood.Version{Description: d, Since: time.Now()}
		s.lastGood.Keep(*p.good)
	}
	s.off[d.ID] = p
}

// restore has the last good version loaded, if the files have changed since it was active in what needs a load.
func (s *Slots) restore(p *slot, d registry.Description) {
	if p.good == nil || p.wasActive(d) || p.good.Description.Disabled {
		return
	}
	p.last = s.version(s.lastGood.Copy(p.good.Description))
	t := s.trials.Get(d.ID, d.Generation())
	p.last.good, p.nextFirst = true, s.crashed || t != nil && !t.Ends.IsZero() // calls have met the version that is on probation
}

// wasActive reports whether the last good version was made from the same: only settings differ that need no load.
func (p *slot) wasActive(d registry.Description) bool {
	return p.good != nil && d.Problem == nil && p.good.Description.Source() == d.Source()
}

// version makes a version that is to be loaded.
func (s *Slots) version(d registry.Description) *version {
	v := &version{description: d, source: d.Source(), since: time.Now(), synchronized: intercept.NewSynchronized()}
	if d.Policy == plugin.Fail {
		v.static = s.loader.Static(d)
	}
	return v
}

// describe notes what the files say, and since when they are bad.
func (p *slot) describe(d registry.Description) {
	if d.Problem != nil && p.description.Problem == nil {
		p.bad = time.Now()
	}
	p.description = d
}

// describe takes the description of one plugin. A load that is under way, or has failed,
// stays valid as long as the module and settings are the same. Files that are bad change nothing.
func (s *Slots) describe(ctx context.Context, p *slot, d registry.Description) {
	p.describe(d)
	if s.bypassed {
		return
	}
	if p.active == nil && p.last == nil && p.next == nil { // at a start, or after a bypass
		s.restore(p, d)
	}
	if d.Problem != nil {
		return
	}
	from := d.Source()
	switch {
	case p.active != nil && p.active.source == from:
		s.discard(p.next)
		p.next = nil
		if !p.active.description.Same(d) {
			s.share(ctx, p, d)
		}
	case p.next != nil && p.next.source == from:
		p.next.redescribe(d)
		if d.Policy == plugin.Fail && len(p.next.static.Hooks) == 0 {
			p.next.static = s.loader.Static(d)
		}
	default:
		s.discard(p.next)
		p.refusal.Set(nil)
		p.next = s.version(d)
		p.next.good = p.wasActive(d)
	}
}

// redescribe gives a version that is on its way the files as they are now. One that is being told of pods begins that anew.
func (v *version) redescribe(d registry.Description) {
	was := v.synchronized
	v.describe(d)
	if v.synchronized != was && v.loaded != nil && v.state == loading {
		v.cancel()
		v.become(ready)
	}
}

// compiles reports whether the module is being compiled for another plugin, whose
// code is to be shared.
func (s *Slots) compiles(digest string) bool {
	return slices.ContainsFunc(s.order, func(p *slot) bool {
		v := p.loads()
		if v == nil || v.description.Digest != digest {
			return false
		}
		return v.state == loading && v.loaded == nil && v.lane == heavy
	})
}

// member returns the slot's place in the chain. There is none if the plugin is not loaded and calls pass
// without it.
func (s *Slots) member(p *slot) (m loader.Member, ok bool) {
	switch {
	case p.active != nil:
		m = s.loader.Member(p.active.description, p.active.loaded, p.active.synchronized)
		if p.shadow != nil && p.shadow.called != nil {
			m.Shadow, m.LoadedShadow = p.shadow.called, p.shadow.loaded
		}
		return m, true
	case p.refuses():
		return s.loader.Refusing(p.refusal, p.awaited().description, p.awaited().static), true
	}
	return m, false
}

// members are the plugins of the chain, as they are now.
func (s *Slots) members() (all []loader.Member) {
	slices.SortFunc(s.order, compareSlots)
	for _, p := range s.order {
		if m, ok := s.member(p); ok {
			all = append(all, m)
		}
		if met := s.state(p); met != p.met {
			p.met, p.since = met, time.Now()
		}
	}
	return all
}

// publish makes the members those that calls meet, if they differ from the published ones. With
// the first plugin that is loaded, or refuses, the store begins to follow calls.
func (s *Slots) publish(ctx context.Context) {
	members := s.published
	if s.changed {
		members, s.changed = s.members(), false
		s.tellPresent()
	}
	another, begins := !slices.EqualFunc(members, s.published, loader.Member.Equal), s.store == unfollowed
	loaded := func(p *slot) bool { return p.loads() != nil && p.loads().loaded != nil }
	if len(members) == 0 && !slices.ContainsFunc(s.order, loaded) {
		if !begins {
			s.unfollow(ctx)
		}
		return
	}
	s.reconciler.Following.Store(true)
	if another {
		s.generation++
	}
	if another || begins {
		s.published = members
		s.generations.swap(s.generations.generation(members))
		if len(members) > 0 {
			e := &observe.GenerationActive{Plugins: []string{}, Refusing: []string{}}
			for _, m := range members {
				if m.Refusing {
					e.Refusing = append(e.Refusing, m.ID)
				} else {
					e.Plugins = append(e.Plugins, m.ID)
				}
			}
			s.observer.Observe(ctx, e)
		}
		s.reconciler.Sync.Notify()
	}
	if begins {
		s.fill(ctx)
	}
}

// ask returns what f returns in the goroutine of run. ok is false if the slots have ended.
func ask[T any](s *Slots, f func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	if !s.post(func(context.Context) { answers <- f() }) {
		return answer, false
	}
	return <-answers, true
}
