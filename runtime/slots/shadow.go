package slots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// shadow is another version beside the active one, which calls are shown and which changes nothing. Each change of its
// settings or its twin's match makes another one.
type shadow struct {
	description registry.Description
	state       state // queued, loading, failed or active
	since       time.Time
	reason      error         // of its last failure
	backoff     time.Duration // until a failed one is loaded again
	loaded      *loader.Loaded
	called      *plugin.Shadow // nil until it is loaded
}

// Shadows load and end shadows of plugins. They belong to the owner of the slots, but for Report.
type Shadows struct {
	slots  *Slots
	loader *loader.Loader
}

func (sh *shadow) become(s state) { sh.state, sh.since = s, time.Now() }

// follow has the slot's shadow be what the active version's files say, if there is room for its load. The twin never
// waits for it.
func (s *Shadows) follow(ctx context.Context, p *slot) {
	var want *registry.Description
	if p.active != nil {
		want = p.active.description.Shadow
	}
	if p.shadow != nil && (want == nil || !p.shadow.description.Same(*want)) {
		s.end(p)
	}
	if want != nil && p.shadow == nil {
		p.shadow = &shadow{description: *want, since: time.Now()}
		if want.Problem != nil {
			s.fail(ctx, p, want.Problem)
		}
	}
	sh := p.shadow
	if sh == nil || sh.state != queued || s.slots.busy[heavy] >= atOnce() {
		return
	}
	sh.become(loading)
	s.slots.busy[heavy]++
	s.slots.jobs.Go(func() { // with a copy of the values that its twin keeps
		own := loader.NewPersistent()
		own.Values.Restore(p.persistent.Values.All())
		have, err := s.loader.Open(ctx, sh.description, own, false)
		posted := s.slots.post(func(ctx context.Context) {
			s.slots.busy[heavy]--
			switch {
			case err != nil && p.shadow == sh:
				s.fail(ctx, p, err)
			case err != nil:
			case p.shadow != sh: // nobody wants it any more
				have.Release()
			default:
				sh.loaded, sh.called, sh.reason = have, s.loader.Shadow(sh.description, have, s.slots.observer), nil
				sh.become(active)
				s.slots.changed = true
			}
		})
		if !posted && err == nil {
			have.Release()
		}
	})
}

// fail notes why the shadow is not loaded. It is loaded again if that was temporary.
func (s *Shadows) fail(ctx context.Context, p *slot, err error) {
	sh := p.shadow
	if sh.reason == nil || sh.reason.Error() != err.Error() {
		s.slots.observer.Observe(ctx, &observe.ShadowNotLoaded{Plugin: p.id, Err: err})
	}
	sh.reason = err
	sh.become(failed)
	if errors.As(err, new(loader.TemporaryError)) || wasm.Temporary(err) {
		sh.backoff = min(max(2*sh.backoff, minRetry), maxRetry)
		time.AfterFunc(sh.backoff, func() { s.slots.post(func(context.Context) { sh.become(queued) }) })
	}
}

// end ends the shadow of a slot, once the last call that uses it has ended.
func (s *Shadows) end(p *slot) {
	if p.shadow != nil && p.shadow.loaded != nil {
		p.shadow.loaded.Release()
		s.slots.changed = true
	}
	p.shadow = nil
}

// look returns nil for no shadow.
func (sh *shadow) look() *status.Shadow {
	if sh == nil {
		return nil
	}
	one := &status.Shadow{State: sh.state.String(), Since: sh.since, Digest: sh.description.Digest}
	if sh.reason != nil {
		one.Reason = plugin.Printable(sh.reason.Error(), 1<<10)
	}
	if sh.called == nil {
		return one
	}
	one.Version = sh.loaded.Manifest().Version
	one.Outcomes = map[string]uint64{}
	for outcome, n := range sh.called.Report().Outcomes {
		one.Outcomes[string(outcome)] = n
	}
	if b := sh.called.Breaker(); b != nil {
		one.Breaker = b.Status().State.String()
	}
	return one
}

// Report returns what came of the calls of a plugin's shadow. The error is an admin.NotReady.
func (s *Shadows) Report(_ context.Context, id string) (plugin.ShadowReport, error) {
	sh, err := askOf(s.slots, id, func(p *slot) *shadow {
		if p == nil || p.shadow == nil {
			return nil
		}
		now := *p.shadow
		return &now
	})
	switch {
	case err != nil:
		return plugin.ShadowReport{}, err
	case sh == nil:
		return plugin.ShadowReport{}, admin.NotReady(fmt.Sprintf("plugin %s has no shadow: its JSON has no key shadow, or the plugin is not active", id))
	case sh.called == nil && sh.reason != nil:
		return plugin.ShadowReport{}, admin.NotReady(fmt.Sprintf("the shadow of plugin %s is not loaded: %v", id, sh.reason))
	case sh.called == nil:
		return plugin.ShadowReport{}, admin.NotReady(fmt.Sprintf("the shadow of plugin %s is not loaded yet", id))
	}
	return sh.called.Report(), nil
}
