package daemon

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// slots hold the plugins that the files describe, one slot for each id. They belong to the
// goroutine of run, to which the watcher posts new descriptions, and a load its result. It
// never waits for a plugin, a compiler or the backend, so that a change of the files counts
// at once.
type slots struct {
	daemon   *daemon
	observer observe.Observer
	loader   *loader

	events chan func(context.Context)
	ended  chan struct{}  // closed when run has ended
	jobs   sync.WaitGroup // loads, introductions and fills that are under way

	all   map[string]*slot
	order []*slot    // all of them, in the order of the chain
	busy  [lanes]int // loads that are under way
	store following
	fills int // how often one was begun

	bypassed bool // no plugin is loaded, whatever the files say

	published  []member // those of the current generation
	changed    bool     // something happened since that members may come of
	generation uint64   // counts the published sets that differ from the one before
}

// lane is where a load waits for its turn. Each has as many at a time as modules are
// compiled at a time.
type lane uint8

const (
	light lane = iota // what is not compiled: hook servers, and modules whose code is in the cache
	heavy             // what is
	lanes
)

func newSlots(d *daemon, l *loader) *slots {
	return &slots{daemon: d, observer: l.observer, loader: l, events: make(chan func(context.Context)), ended: make(chan struct{}), all: map[string]*slot{}}
}

// run serves events until ctx is done. Several that wait are one change.
func (s *slots) run(ctx context.Context) {
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
func (s *slots) post(event func(context.Context)) bool {
	select {
	case s.events <- event:
		return true
	case <-s.ended:
		return false
	}
}

// reconcile begins the loads for which there is room, makes loaded plugins active, and
// publishes a generation if the set of active or refusing plugins has changed.
func (s *slots) reconcile(ctx context.Context) {
	waits := false
	for l := light; l < lanes && !waits; l++ { // compiled code goes first
		for _, p := range s.order {
			switch v := p.next; {
			case v == nil || v.state != queued || v.lane != l:
			case s.busy[l] == wasm.Compilers() || l == heavy && s.compiles(v.description.Digest):
				waits = true
			default:
				s.load(ctx, p, v)
			}
		}
	}
	for _, p := range s.order {
		if v := p.next; v != nil && v.state == ready && s.store == filled {
			s.promote(ctx, p, v)
		}
	}
	s.publish(ctx)
}

// update takes the descriptions of the files as they are now.
func (s *slots) update(ctx context.Context, all []registry.Description) {
	s.changed = true
	s.daemon.describe(ctx, all)
	gone := s.all
	s.all, s.order = make(map[string]*slot, len(all)), nil
	for _, d := range all {
		p := gone[d.ID]
		if p == nil {
			p = newSlot(d.ID)
			p.before = s.daemon.durable.restore(ctx, d.ID, p.persistent.values)
		}
		delete(gone, d.ID)
		s.all[d.ID], s.order = p, append(s.order, p)
		s.describe(ctx, p, d)
	}
	if len(gone) == 0 {
		return
	}
	off := map[string]bool{}
	for _, d := range registry.Disabled(dirsOf(s.daemon.config)) {
		off[d.ID] = true
	}
	for _, p := range gone {
		s.discard(p.next)
		s.retire(p.active)
		s.observer.Observe(ctx, &observe.PluginRemoved{Plugin: p.id, Disabled: off[p.id]})
	}
}

// describe takes the description of one plugin. A load that is under way, or has failed,
// stays valid as long as the module and settings are the same.
func (s *slots) describe(ctx context.Context, p *slot, d registry.Description) {
	known := reflect.DeepEqual(p.description, d)
	p.description = d
	if s.bypassed {
		return
	}
	from := d.Source()
	if !known && p.active == nil && d.Policy == plugin.Fail {
		// A load may have told more of the same module than its file does.
		if static := s.loader.kind(d).static(d); len(static.Hooks) > 0 || p.next == nil || p.next.source != from {
			p.static = static
		}
	}
	switch {
	case p.active != nil && p.active.source == from:
		s.discard(p.next)
		p.next, p.active.description = nil, d
		s.loader.warnOnce(ctx, p)
	case p.next != nil && p.next.source == from:
		p.next.description = d
	default:
		s.discard(p.next)
		p.notLoaded.reason.Store(nil)
		p.next = &version{description: d, source: from, since: time.Now()}
		if d.Problem != nil {
			s.fail(ctx, p, p.next, d.Problem)
		}
	}
}

// compiles reports whether the module is being compiled for another plugin, whose
// code is to be shared.
func (s *slots) compiles(digest string) bool {
	return slices.ContainsFunc(s.order, func(p *slot) bool {
		v := p.next
		return v != nil && v.state == loading && v.loaded == nil && v.lane == heavy && v.description.Digest == digest
	})
}

// members are the plugins of the chain, as they are now.
func (s *slots) members() (all []member) {
	for _, p := range s.order {
		if m, ok := s.place(p); ok {
			all = append(all, m)
		}
		if met := s.state(p); met != p.met {
			p.met, p.since = met, time.Now()
		}
	}
	return all
}

// place returns the slot's member, as the loader does; none while plugins are bypassed.
func (s *slots) place(p *slot) (m member, ok bool) {
	if s.bypassed {
		return m, false
	}
	return s.loader.place(p)
}

// publish makes the members those that calls meet, if they differ from the published ones. With
// the first plugin that is loaded, or refuses, the store begins to follow calls.
func (s *slots) publish(ctx context.Context) {
	d, members := s.daemon, s.published
	if s.changed {
		members, s.changed = s.members(), false
	}
	another, begins := !slices.EqualFunc(members, s.published, member.equal), s.store == unfollowed
	if another {
		s.generation++
	}
	loaded := func(p *slot) bool { return p.next != nil && p.next.loaded != nil }
	if len(members) == 0 && !slices.ContainsFunc(s.order, loaded) {
		if !begins {
			s.unfollow(ctx)
		}
		return
	}
	d.following.Store(true)
	if another || begins {
		s.published = members
		d.current.swap(d.generation(members))
		if len(members) > 0 {
			s.observer.Observe(ctx, activeOf(members))
		}
		d.syncTrigger.notify()
	}
	if begins {
		s.fill(ctx)
	}
}

// activeOf names the members that are active, and those that refuse.
func activeOf(members []member) *observe.GenerationActive {
	e := &observe.GenerationActive{Plugins: []string{}, Refusing: []string{}}
	for _, m := range members {
		if m.refusing {
			e.Refusing = append(e.Refusing, m.ID)
		} else {
			e.Plugins = append(e.Plugins, m.ID)
		}
	}
	return e
}

// close releases every plugin. Events that are posted now are dropped.
func (s *slots) close() {
	for _, p := range s.order {
		s.discard(p.next)
		s.retire(p.active)
	}
	s.all, s.order = nil, nil
}
