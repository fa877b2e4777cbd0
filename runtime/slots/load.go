package slots

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
func (p *slot) load(ctx context.Context, v *version) {
	if !v.announced {
		v.announced = true
		p.owner.observer.Observe(ctx, &observe.PluginLoading{Plugin: p.id})
	}
	p.owner.load(ctx, v, p.owner.loader, p.persistent, func(ctx context.Context, err error) {
		if err != nil {
			p.fail(ctx, v, err)
		}
	})
}

// load loads a version in the background, with what the plugin keeps. ended is called once it is ready, or with the error,
// unless nobody wants it any more.
func (s *Slots) load(ctx context.Context, v *version, by *loader.Loader, keeps loader.Persistent, ended func(context.Context, error)) {
	ctx, cancel := context.WithCancel(ctx)
	v.cancel = cancel
	v.become(loading)
	s.busy[v.lane]++
	d, l, start := v.description, v.lane, time.Now()
	s.jobs.Go(func() {
		defer cancel()
		have, err := by.Open(ctx, d, keeps, l == light)
		posted := s.post(func(ctx context.Context) {
			s.busy[l]--
			v.took += time.Since(start)
			switch {
			case err == nil && v.state == closed:
				have.Release()
			case err == nil:
				v.loaded = have
				v.become(ready)
				ended(ctx, nil)
			case v.state == closed:
			case errors.Is(err, wasm.ErrNotCompiled):
				v.lane = heavy
				v.become(queued)
			default:
				ended(ctx, err)
			}
		})
		if !posted && err == nil {
			have.Release()
		}
	})
}

// promote makes a version that is loaded the active one, once it was told of the pods
// if it wants that.
func (p *slot) promote(ctx context.Context, v *version) {
	m := p.owner.loader.Member(v.description, v.loaded, v.synchronized)
	if m.Synchronizes() && !v.synced {
		p.synchronize(ctx, v, m)
		return
	}
	previous := p.active
	if v == p.next {
		p.last.discard()
		p.next = nil
	}
	p.active, p.last, p.owner.changed = v, nil, true
	v.become(active)
	v.reason, v.good = nil, true
	p.remember(ctx)
	v.stopTicks = p.owner.ticks.begin(ctx, v.loaded, v.description.TickPeriod)
	manifest := v.loaded.Manifest()
	p.owner.durable.Keep(ctx, p.id, p.persistent.Values, manifest.Durable)
	loaded := observe.PluginLoaded{
		Plugin: p.id, Name: manifest.Name, Version: manifest.Version, Hooks: manifest.HookSet().Names(), Took: v.took,
		Digest: v.description.Digest, SettingsDigest: v.description.Settings,
	}
	if previous == nil {
		p.owner.observer.Observe(ctx, &loaded)
	} else {
		p.owner.observer.Observe(ctx, &observe.PluginReplaced{PluginLoaded: loaded, Previous: previous.loaded.Manifest().Version})
	}
	previous.retire()
	p.warned = nil
	p.warnOnce(ctx)
	p.describe(ctx, p.description) // the files may differ from a last good version in what needs no load
}

// share makes the description that of the active version, from which it differs in nothing that a load needs.
// Instances of the plugin and their state go on. It is told of the pods again, and what it wants no longer is undone.
func (p *slot) share(ctx context.Context, d registry.Description) {
	v := *p.active
	v.describe(d)
	v.since = time.Now()
	p.active, p.owner.changed = &v, true
	p.remember(ctx)
	p.owner.observer.Observe(ctx, &observe.PluginSettingsChanged{Plugin: p.id, SettingsDigest: d.Settings})
	p.warnOnce(ctx)
}

// warnOnce reports the warnings of an active plugin, once for each version and whenever they
// change with its file.
func (p *slot) warnOnce(ctx context.Context) {
	warnings := p.owner.loader.Warnings(p.active.description, p.active.loaded.Manifest())
	if reflect.DeepEqual(p.warned, warnings) {
		return
	}
	p.warned = warnings
	for _, n := range warnings {
		p.owner.observer.Observe(ctx, n)
	}
}

// remember has the active version saved as the last good one. If it is on probation, that begins with the first call of this.
func (p *slot) remember(ctx context.Context) {
	s, d := p.owner, p.active.description
	if p.isGood(d) {
		s.trials.Settle(p.id, s.counts)
		s.trials.Pass(p.id, d.Generation()) // a delivery has brought it again, and there is none to go back to
		if !p.good.Description.Same(d) {
			p.good = &lastgood.Version{Description: d, Since: p.good.Since}
			s.lastGood.Keep(*p.good)
		}
		return
	}
	generation := d.Generation()
	if t := s.trials.Get(p.id, generation); t != nil && t.Open() {
		if p.judging == generation {
			return
		}
		s.trials.Activate(p.id, generation, s.counts(p.id))
		if t.Ends.IsZero() {
			s.observer.Observe(ctx, &observe.ProbationBegun{Plugin: p.id, Ends: s.trials.Get(p.id, generation).Ends})
		}
		p.judging = generation
		p.judgeLater(generation)
		return
	}
	s.trials.Settle(p.id, s.counts)
	p.good = &lastgood.Version{Description: d, Since: time.Now()}
	s.lastGood.Keep(*p.good)
}

// synchronize calls Synchronize of a version for the pods, for one at least, in the background,
// before it gets an event. The previous version stays active meanwhile. Pods that are made
// meanwhile, or for which there was no time, follow with their first event, or with syncMissed.
func (p *slot) synchronize(ctx context.Context, v *version, m loader.Member) {
	ctx, cancel := context.WithCancel(ctx)
	v.cancel = cancel
	v.become(loading)
	m.Loaded.Acquire()
	start := time.Now()
	p.owner.jobs.Go(func() {
		defer m.Loaded.Release()
		defer cancel()
		late := func() bool { return ctx.Err() != nil || time.Since(start) >= p.owner.firstSyncTime } // or nobody wants it any more
		left, err := m.Synchronized.Sweep(ctx, p.owner.generations.options([]loader.Member{m}), m.Member, late)
		if err == nil && left > 0 && ctx.Err() == nil {
			p.owner.observer.Observe(ctx, &observe.SynchronizeIncomplete{Plugin: p.id, Left: left})
		}
		p.owner.post(func(context.Context) {
			v.took += time.Since(start)
			switch {
			case v.state == closed || v.synchronized != m.Synchronized: // the files have changed since
			case err != nil:
				p.fail(ctx, v, loader.TemporaryError{Err: fmt.Errorf("loading plugin %s: %s: %w", p.id, abi.Synchronize, err)})
			default:
				v.synced = true
				v.become(ready)
			}
		})
	})
}

// fail notes why a version of these slots is not loaded, and reports whether that is another reason than before. The same
// module and settings are loaded again only if the failure was temporary.
func (v *version) fail(s *Slots, err error) (another bool) {
	another = v.reason == nil || v.reason.Error() != err.Error()
	if v.reason == nil {
		v.failedSince = time.Now()
	}
	v.reason = err
	v.become(failed)
	if errors.As(err, new(loader.TemporaryError)) || wasm.Temporary(err) {
		v.backoff = min(max(2*v.backoff, minRetry), maxRetry)
		time.AfterFunc(v.backoff, func() {
			s.post(func(context.Context) {
				if v.state == failed && v.loaded != nil { // its synchronization has failed
					v.become(ready)
				} else if v.state == failed {
					v.become(queued)
				}
			})
		})
	}
	return another
}

// fail notes why a version could not be loaded, and what calls meet meanwhile.
func (p *slot) fail(ctx context.Context, v *version, err error) {
	refused := p.refuses()
	another := v.fail(p.owner, err)
	if v == p.next && v.backoff == 0 { // it is not loaded again
		p.owner.trials.NotLoaded(p.id, v.description.Generation())
	}
	if loadErr := new(wasm.LoadError); errors.As(err, &loadErr) && len(v.static.Hooks) == 0 {
		v.static, p.owner.changed = loadErr.Manifest, true
	}
	p.owner.changed = p.owner.changed || refused != p.refuses()
	if v == p.last && p.active != nil { // which has failed its probation, and does not stay until this one can be loaded
		p.active.retire()
		p.active, p.owner.changed = nil, true
		p.describe(ctx, p.description) // it may be wanted once more
	}
	if v == p.awaited() {
		p.refusal.Set(err)
	}
	if !another {
		return
	}
	rejected := observe.PluginRejected{Plugin: p.id, Err: err}
	switch {
	case p.active != nil:
		rejected.Meanwhile, rejected.Previous = observe.PreviousActive, p.active.loaded.Manifest().Version
	case p.refuses():
		rejected.Meanwhile, rejected.Hooks = observe.CallsRefused, loader.RefusedHooks(p.awaited().description, p.awaited().static).Names()
	default:
		rejected.Meanwhile = observe.PluginSkipped
	}
	p.owner.observer.Observe(ctx, &rejected)
}

// discard ends a version that is not needed any more and never was active.
func (v *version) discard() {
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
func (v *version) retire() {
	if v == nil {
		return
	}
	v.stopTicks()
	v.become(draining)
	v.loaded.Release()
}

// unload ends every version of a plugin.
func (p *slot) unload() {
	p.last.discard()
	p.next.discard()
	p.active.retire()
	p.owner.Shadows.end(p)
	p.active, p.last, p.next = nil, nil, nil
}
