package slots

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Shadows load and end shadows of plugins. They belong to the owner of the slots, but for Report.
type Shadows struct {
	slots  *Slots
	loader *loader.Loader
}

// follow has the slot's shadow be what the active version's files say, if there is room for its load. Each change of its
// settings or its twin's match makes another one.
func (s *Shadows) follow(ctx context.Context, p *slot) {
	var want *registry.Description
	if p.active != nil {
		want = p.active.description.Shadow
	}
	if p.shadow != nil && (want == nil || !p.shadow.description.Same(*want)) {
		s.end(p)
	}
	if want != nil && p.shadow == nil {
		p.shadow = &version{description: *want, since: time.Now()}
		if want.Problem != nil {
			s.fail(ctx, p, want.Problem)
		}
	}
	v := p.shadow
	if v == nil || v.state != queued || !s.slots.room(v) {
		return
	}
	keeps := loader.NewPersistent() // a copy of the values that its twin keeps
	keeps.Values.Restore(p.persistent.Values.All())
	s.slots.load(ctx, v, s.loader, keeps, func(ctx context.Context, err error) {
		if err != nil {
			s.fail(ctx, p, err)
			return
		}
		v.called, v.reason = s.loader.Shadow(v.description, v.loaded, s.slots.observer), nil
		v.become(active)
		s.slots.changed = true
	})
}

// fail notes why the shadow is not loaded.
func (s *Shadows) fail(ctx context.Context, p *slot, err error) {
	if p.shadow.fail(s.slots, err) {
		s.slots.observer.Observe(ctx, &observe.ShadowNotLoaded{Plugin: p.id, Err: err})
	}
}

// end ends the shadow of a slot, once the last call that uses it has ended.
func (s *Shadows) end(p *slot) {
	p.shadow.discard()
	p.shadow, s.slots.changed = nil, true
}

// lookShadow is look for a shadow.
func (v *version) lookShadow() *status.Shadow {
	of := v.look()
	if of == nil {
		return nil
	}
	one := &status.Shadow{State: of.State, Since: of.Since, Digest: of.Digest, Version: of.Version, Reason: of.Reason}
	if v.called == nil {
		return one
	}
	one.Outcomes = map[string]uint64{}
	for outcome, n := range v.called.Report().Outcomes {
		one.Outcomes[string(outcome)] = n
	}
	if b := v.called.Breaker(); b != nil {
		one.Breaker = b.Status().State.String()
	}
	return one
}

// Report returns what came of the calls of a plugin's shadow. The error is an admin.NotReady, or that ctx is done.
func (s *Shadows) Report(ctx context.Context, id string) (plugin.ShadowReport, error) {
	return ask(ctx, s.slots, func() (none plugin.ShadowReport, err error) {
		p, err := s.slots.find(id)
		switch {
		case err != nil:
			return none, err
		case p.shadow == nil:
			return none, admin.NotReady(fmt.Sprintf("plugin %s has no shadow: its JSON has no key shadow, or the plugin is not active", id))
		case p.shadow.called != nil:
			return p.shadow.called.Report(), nil
		case p.shadow.reason != nil:
			return none, admin.NotReady(fmt.Sprintf("the shadow of plugin %s is not loaded: %v", id, p.shadow.reason))
		}
		return none, admin.NotReady(fmt.Sprintf("the shadow of plugin %s is not loaded yet", id))
	})
}
