package slots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// The time until a failed load is tried again: at first, doubled by each failure, and at
// most.
const (
	minRetry = time.Second
	maxRetry = 5 * time.Minute
)

// load loads a version in the background.
func (s *Slots) load(ctx context.Context, p *slot, v *version) {
	if !v.announced {
		v.announced = true
		s.observer.Observe(ctx, &observe.PluginLoading{Plugin: p.id})
	}
	ctx, cancel := context.WithCancel(ctx)
	v.cancel = cancel
	v.become(loading)
	s.busy[v.lane]++
	d, l, start := v.description, v.lane, time.Now()
	s.jobs.Go(func() {
		defer cancel()
		have, err := s.loader.Open(ctx, d, p.persistent, l == light)
		posted := s.post(func(ctx context.Context) {
			s.busy[l]--
			v.took += time.Since(start)
			switch {
			case err == nil && v.state == closed:
				have.Release()
			case err == nil:
				v.loaded = have
				v.become(ready)
			case v.state == closed:
			case errors.Is(err, wasm.ErrNotCompiled):
				v.lane = heavy
				v.become(queued)
			default:
				s.fail(ctx, p, v, err)
			}
		})
		if !posted && err == nil {
			have.Release()
		}
	})
}

// promote makes a version that is loaded the active one, once it was told of the pods
// if it wants that.
func (s *Slots) promote(ctx context.Context, p *slot, v *version) {
	m := s.loader.Member(v.description, v.loaded, v.synchronized)
	if m.Synchronizes() && !v.synced {
		s.synchronize(ctx, p, v, m)
		return
	}
	previous := p.active
	if v == p.next {
		s.discard(p.last)
		p.next = nil
	}
	p.active, p.last, s.changed = v, nil, true
	v.become(active)
	v.reason, v.good = nil, true
	s.remember(ctx, p)
	v.stopTicks = s.ticks.begin(ctx, v.loaded, v.description.TickPeriod)
	manifest := v.loaded.Manifest()
	s.durable.Keep(ctx, p.id, p.persistent.Values, manifest.Durable)
	loaded := observe.PluginLoaded{
		Plugin: p.id, Name: manifest.Name, Version: manifest.Version, Hooks: manifest.HookSet().Names(), Took: v.took,
		Digest: v.description.Digest, SettingsDigest: v.description.Settings,
	}
	if previous == nil {
		s.observer.Observe(ctx, &loaded)
	} else {
		s.observer.Observe(ctx, &observe.PluginReplaced{PluginLoaded: loaded, Previous: previous.loaded.Manifest().Version})
	}
	s.retire(previous)
	p.warned = nil
	s.warnOnce(ctx, p)
	s.describe(ctx, p, p.description) // the files may differ from a last good version in what needs no load
}

// share makes the description that of the active version, from which it differs in nothing that a load needs.
// Instances of the plugin and their state go on. It is told of the pods again, and what it wants no longer is undone.
func (s *Slots) share(ctx context.Context, p *slot, d registry.Description) {
	v := *p.active
	v.describe(d)
	v.since = time.Now()
	p.active, s.changed = &v, true
	s.remember(ctx, p)
	s.observer.Observe(ctx, &observe.PluginSettingsChanged{Plugin: p.id, SettingsDigest: d.Settings})
	s.warnOnce(ctx, p)
}

// remember has the active version saved as the last good one, if it is not on probation.
func (s *Slots) remember(ctx context.Context, p *slot) {
	d := p.active.description
	isGood := p.good != nil && p.good.Description.Same(d)
	if !isGood && s.onProbation(ctx, p) {
		return
	}
	s.trials.Settle(p.id, s.counts)
	if isGood {
		return
	}
	p.good = &lastgood.Version{Description: d, Since: time.Now()}
	s.lastGood.Keep(*p.good)
}

// synchronize calls Synchronize of a version for the pods, for one at least, in the background,
// before it gets an event. The previous version stays active meanwhile. Pods that are made
// meanwhile, or for which there was no time, follow with their first event, or with syncMissed.
func (s *Slots) synchronize(ctx context.Context, p *slot, v *version, m loader.Member) {
	ctx, cancel := context.WithCancel(ctx)
	v.cancel = cancel
	v.become(loading)
	m.Loaded.Acquire()
	start := time.Now()
	s.jobs.Go(func() {
		defer m.Loaded.Release()
		defer cancel()
		late := func() bool { return ctx.Err() != nil || time.Since(start) >= s.firstSyncTime } // or nobody wants it any more
		left, err := m.Synchronized.Sweep(ctx, s.generations.options([]loader.Member{m}), m.Member, late)
		if err == nil && left > 0 && ctx.Err() == nil {
			s.observer.Observe(ctx, &observe.SynchronizeIncomplete{Plugin: p.id, Left: left})
		}
		s.post(func(context.Context) {
			v.took += time.Since(start)
			switch {
			case v.state == closed || v.synchronized != m.Synchronized: // the files have changed since
			case err != nil:
				s.fail(ctx, p, v, loader.TemporaryError{Err: fmt.Errorf("loading plugin %s: %s: %w", p.id, abi.Synchronize, err)})
			default:
				v.synced = true
				v.become(ready)
			}
		})
	})
}

// fail records why a version could not be loaded. The same module and settings are loaded
// again only if the failure was temporary.
func (s *Slots) fail(ctx context.Context, p *slot, v *version, err error) {
	known := v.reason != nil && v.reason.Error() == err.Error()
	if v.reason == nil {
		v.failedSince = time.Now()
	}
	refused := p.refuses()
	v.reason = err
	v.become(failed)
	if loadErr := new(wasm.LoadError); errors.As(err, &loadErr) && len(v.static.Hooks) == 0 {
		v.static, s.changed = loadErr.Manifest, true
	}
	s.changed = s.changed || refused != p.refuses()
	if v == p.awaited() {
		p.refusal.Set(err)
	}
	if errors.As(err, new(loader.TemporaryError)) || wasm.Temporary(err) {
		v.backoff = min(max(2*v.backoff, minRetry), maxRetry)
		time.AfterFunc(v.backoff, func() { s.post(func(context.Context) { v.retry() }) })
	}
	if !known {
		s.reportFailure(ctx, p, err)
	}
}

// reportFailure reports what the failure means for calls.
func (s *Slots) reportFailure(ctx context.Context, p *slot, err error) {
	rejected := observe.PluginRejected{Plugin: p.id, Err: err}
	switch {
	case p.active != nil:
		rejected.Meanwhile, rejected.Previous = observe.PreviousActive, p.active.loaded.Manifest().Version
	case p.refuses():
		rejected.Meanwhile, rejected.Hooks = observe.CallsRefused, loader.RefusedHooks(p.awaited().description, p.awaited().static).Names()
	default:
		rejected.Meanwhile = observe.PluginSkipped
	}
	s.observer.Observe(ctx, &rejected)
}

// discard ends a version that is not needed any more and never was active.
func (s *Slots) discard(v *version) {
	if v == nil {
		return
	}
	if v.cancel != nil {
		v.cancel()
	}
	v.become(closed)
	if v.loaded != nil {
		v.loaded.Release()
	}
}

// retire releases a version that was active. It is closed when the last call that uses it
// has ended.
func (s *Slots) retire(v *version) {
	if v == nil {
		return
	}
	v.stopTicks()
	v.become(draining)
	v.loaded.Release()
}

// unload ends every version of a plugin.
func (s *Slots) unload(p *slot) {
	s.discard(p.last)
	s.discard(p.next)
	s.retire(p.active)
	s.Shadows.end(p)
	p.active, p.last, p.next = nil, nil, nil
}
