package slots

import (
	"context"
	"maps"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// Plugins returns the state at the moment. The error is that the slots have ended, or do not
// answer before ctx is done.
func (s *Slots) Plugins(ctx context.Context) (status.Plugins, error) {
	return ask(ctx, s, func() (status.Plugins, error) { return s.look(), nil })
}

// look takes the snapshot. It is for the goroutine of run.
func (s *Slots) look() status.Plugins {
	all := status.Plugins{Generation: s.generation, Plugins: []status.Plugin{}}
	for _, p := range slices.Concat(s.order, slices.SortedFunc(maps.Values(s.off), compareSlots)) {
		d := p.shown()
		one := status.Plugin{
			ID: p.id, File: plugin.Name(p.description.File), Kind: "wasm", State: p.met, Since: p.since,
			Policy: d.Policy.String(), DryRun: d.DryRun, Failure: p.failure(), Active: p.active.look(), Pending: p.next.look(),
		}
		if d.IsHookServer() {
			one.Kind = "hook server"
		}
		if d.Problem != nil { // its policy is not known
			one.Policy = ""
		}
		if one.Pending == nil {
			one.Pending = p.last.look()
		}
		one.Shadow = p.shadow.lookShadow()
		if p.judging != "" {
			if t := s.trials.Get(p.id, p.judging); t != nil {
				one.Probation = t.Ends
			}
		}
		if m, there := p.member(); there {
			one.Hooks = m.Hooks.Names()
			if m.Breaker != nil {
				breaker := m.Breaker.Status()
				one.Breaker, one.BreakerUntil = breaker.State.String(), breaker.Until
			}
		}
		for _, v := range []*version{p.active, p.last, p.next, p.shadow} {
			if v != nil && v.loaded != nil {
				instances, memory := wasm.Usage(v.loaded.Plugin)
				one.Instances, one.Memory = one.Instances+instances, one.Memory+memory
			}
		}
		all.Plugins = append(all.Plugins, one)
	}
	return all
}

// look returns nil for no version.
func (v *version) look() *status.Version {
	if v == nil {
		return nil
	}
	one := &status.Version{Digest: v.description.Digest, Settings: v.description.Settings, State: v.state.String(), Since: v.since}
	if v.loaded != nil {
		manifest := v.loaded.Manifest()
		one.Name, one.Version = manifest.Name, manifest.Version
	}
	if v.reason != nil {
		one.Reason = plugin.Printable(v.reason.Error(), 1<<10)
	}
	return one
}
