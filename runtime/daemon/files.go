package daemon

import (
	"context"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// scanPeriod is how often a part of the cgroup files is compared with the ledger. A tenth of it more or
// less keeps the nodes of a cluster apart.
const scanPeriod = 30 * time.Second

// scanFiles repairs cgroup files, and has systemd keep what it did not yet, until ctx is done.
func (d *daemon) scanFiles(ctx context.Context) {
	for scan := uint64(0); ; {
		select {
		case <-time.After(d.scanPeriod*9/10 + rand.N(d.scanPeriod/5)):
			d.dropGone(ctx)
			d.enforcer().ScanPart(ctx, scan)
			scan++
			d.systemd.Retry(ctx)
		case <-d.reloadTrigger:
			d.enforcer().AfterReload(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// systemdEvents are what systemd's connection reports, of which a reload has the files repaired
// that systemd has overwritten.
func systemdEvents(observer observe.Observer, reloaded trigger) systemd.Events {
	ctx := context.Background() // no call causes them
	return systemd.Events{
		Connected:   func(version int) { observer.Observe(ctx, &observe.SystemdConnected{Version: version}) },
		Unavailable: func(err error) { observer.Observe(ctx, &observe.SystemdUnavailable{Err: err}) },
		Refused: func(unit, property string, err error) {
			observer.Observe(ctx, &observe.SystemdPropertyRefused{Unit: unit, Property: property, Err: err})
		},
		Reloaded: func() {
			observer.Observe(ctx, &observe.SystemdReloaded{})
			reloaded.notify()
		},
	}
}

// fill fills the store, and brings the ledger and the cgroup files to where the runtime is.
func (d *daemon) fill(ctx context.Context) {
	ctx, cancel := d.bypass.cut.Load().Context(ctx)
	defer cancel()
	if !d.settle(ctx) {
		return
	}
	defer d.settled()
	d.backend.fill(ctx)
	d.backend.describe(ctx)
	if !d.backend.behind() && d.following.Load() {
		d.enforcer().DropGone()
		d.endWishes(ctx) // before Settle would write their values again
		d.enforcer().Settle(ctx)
	}
}

// settle waits until nobody else fills the store or undoes values, and keeps others from it until
// settled is called: the records of pods that the store lacks are dropped, and resources of
// containers that it lacks are not reset. It reports false if ctx is done.
func (d *daemon) settle(ctx context.Context) bool {
	select {
	case d.settling <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *daemon) settled() { <-d.settling }

// tellPresent tells what each plugin may want from now on. It does not until all plugins are known: a
// directory that cannot be read does not mean that its plugins are removed. Files that are bad change nothing. In a
// bypass no plugin may want anything.
func (s *slots) tellPresent() {
	d, all := s.daemon, map[string]*intercept.Generation{}
	if s.bypassed {
		d.present.Store(&all)
		d.syncTrigger.notify()
		return
	}
	if before := d.present.Load(); !s.complete && before == nil {
		return
	} else if !s.complete {
		maps.Copy(all, *before)
	}
	for _, p := range s.order {
		g, shown := new(intercept.Generation), p.shown()
		if all[p.id] = g; shown.Problem == nil {
			g.Name, g.Nothing, g.Match = shown.Generation(), shown.DryRun, shown.Match
		}
		if p.next != nil {
			g.Next = p.next.description.Generation()
		}
		if p.active != nil {
			m := s.loader.member(p.active)
			g.Member = &m.Member
			m.synchronized.Expect(g.Next)
		}
	}
	d.present.Store(&all)
	d.syncTrigger.notify()
}

// forget removes what earlier versions have saved of plugins that are not there any more, once that is known.
func forget(ctx context.Context, list registry.List, versions *lastGood, values *durable) {
	if !list.Complete {
		return
	}
	ids, files := make(map[string]bool, len(list.Plugins)), make(map[string]bool, len(list.Plugins))
	for i := range list.Plugins {
		p := &list.Plugins[i]
		files[p.ID] = true
		if !p.Disabled {
			ids[p.ID] = true
		}
	}
	versions.forget(files)
	values.forget(ctx, ids)
}

// undoEnded undoes the values that plugins cannot want any more.
func (d *daemon) undoEnded(ctx context.Context) {
	if d.following.Load() && d.backend.behind() { // the containers are not known yet
		return
	}
	if !d.settle(ctx) {
		return
	}
	defer d.settled()
	d.endWishes(ctx)
}

// endWishes ends the wishes of plugins that cannot want them any more.
func (d *daemon) endWishes(ctx context.Context) {
	if present := d.present.Load(); present != nil {
		intercept.End(ctx, d.enforcer(), func(plugin string) *intercept.Generation { return (*present)[plugin] }).Wait(ctx)
	}
}
