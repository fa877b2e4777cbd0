// Package slots has plugins go from their files to calls: it loads what the files say, has each new plugin told of the pods,
// and publishes a generation, with which new calls are intercepted. It keeps the last good version while files are bad, and
// takes all plugins out of the way in a bypass. How a plugin is made is for package loader, and what a generation does with
// a call is for package intercept.
package slots

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/durable"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
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

// lane is where a load waits for its turn.
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
				p.promote(ctx, v)
			}
		}
	}
	waits := false
	for l := light; l < lanes && !waits; l++ { // compiled code goes first
		for _, p := range s.order {
			switch v := p.loads(); {
			case v == nil || v.state != queued || v.lane != l:
			case !s.room(v):
				waits = true
			default:
				p.load(ctx, v)
			}
		}
	}
	for _, p := range s.order { // after the plugins themselves
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
	gone, off := s.all, s.off
	s.all, s.order, s.off = make(map[string]*slot, len(list.Plugins)), nil, map[string]*slot{}
	there, enabled := make(map[string]bool, len(list.Plugins)), make(map[string]bool, len(list.Plugins))
	for _, d := range list.Plugins {
		there[d.ID], enabled[d.ID] = true, !d.Disabled
		if d.Disabled { // which the last good files say while those of the moment are bad
			p := off[d.ID]
			if p == nil {
				p = newSlot(s, d.ID)
				p.met = status.Disabled
			}
			p.note(d)
			if d.Problem == nil && (p.good == nil || !p.good.Description.Same(d)) {
				p.good = &lastgood.Version{Description: d, Since: time.Now()}
				s.lastGood.Keep(*p.good)
			}
			s.off[d.ID] = p
			continue
		}
		p := gone[d.ID]
		if p == nil {
			p = newSlot(s, d.ID)
			s.durable.Restore(ctx, d.ID, p.persistent.Values)
			if good, known := s.good[d.ID]; known {
				p.good = &good
			}
		}
		delete(gone, d.ID)
		delete(s.good, d.ID)
		s.all[d.ID], s.order = p, append(s.order, p)
		p.describe(ctx, judged(s.trials, d))
	}
	if list.Complete { // what was saved of plugins that are not there any more is removed
		s.good = nil
		s.lastGood.Retain(there)
		s.durable.Forget(enabled)
	}
	for _, p := range gone {
		p.unload()
		s.observer.Observe(ctx, &observe.PluginRemoved{Plugin: p.id, Disabled: s.off[p.id] != nil})
		s.trials.Removed(p.id)
	}
}

// room reports whether a version can be loaded now. It cannot while its module is being compiled for another plugin, whose
// code is to be shared.
func (s *Slots) room(v *version) bool {
	if v.lane == heavy {
		for _, p := range s.order {
			for _, o := range []*version{p.loads(), p.shadow} {
				if o.compiles() && o.description.Digest == v.description.Digest {
					return false
				}
			}
		}
	}
	// One for each processor, and two at least, so that a module which takes long to compile does not hold up another.
	return s.busy[v.lane] < max(2, runtime.GOMAXPROCS(0))
}

// compiles reports whether the version's module is being compiled.
func (v *version) compiles() bool {
	if v == nil || v.loaded != nil {
		return false
	}
	return v.state == loading && v.lane == heavy
}

// publish makes the members those that calls meet, if they differ from the published ones. With
// the first plugin that is loaded, or refuses, the store begins to follow calls.
func (s *Slots) publish(ctx context.Context) {
	members := s.published
	if s.changed {
		members, s.changed = nil, false
		slices.SortFunc(s.order, compareSlots)
		for _, p := range s.order {
			if m, ok := p.member(); ok {
				members = append(members, m)
			}
			if met := p.state(); met != p.met {
				p.met, p.since = met, time.Now()
			}
		}
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

// ask returns what f returns in the goroutine of run. The error is f's, an admin.NotReady if the slots have ended, or
// that there is no answer before ctx is done.
func ask[T any](ctx context.Context, s *Slots, f func() (T, error)) (none T, err error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	event := func(context.Context) {
		value, err := f()
		answers <- answer{value, err}
	}
	late := func() error { return fmt.Errorf("waiting for the owner of the plugins: %w", ctx.Err()) }
	select {
	case s.events <- event:
	case <-s.ended:
		return none, admin.NotReady("the proxy stops")
	case <-ctx.Done():
		return none, late()
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, late()
	}
}

// find returns the slot of a plugin, also of one that is switched off. The error is an admin.NotReady.
func (s *Slots) find(id string) (*slot, error) {
	p := cmp.Or(s.all[id], s.off[id])
	if p == nil {
		return nil, admin.NotReady(fmt.Sprintf("there is no plugin %q; wasmproxy plugin list shows the ids", id))
	}
	return p, nil
}
