package daemon

import (
	"context"
	"slices"

	"google.golang.org/grpc/connectivity"

	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// levels returns the state of the moment, for metrics.
func (d *daemon) levels() (l metrics.Levels) {
	l.Plugins, _ = ask(d.slots, d.slots.levels)
	l.Connections = d.server.Connections()
	backend := d.backend.conn.GetState()
	l.BackendConnected = backend == connectivity.Ready
	l.StoreFilled = !d.following.Load() || !d.backend.behind()
	l.Pods, l.Containers = d.store.Len()
	l.NotHeld, l.StateSaved = d.ledger.NotHeld(), d.ledger.Saved() && d.durable.allSaved() && d.lastGood.saved()
	l.LedgerObjects, l.LedgerValues = d.ledger.Len()
	l.QueueLength = d.queue.Len()
	state := d.settings.State()
	l.SettingsRefused, l.SettingsChanged = state.Err != nil, state.Changed
	l.Bypass = d.bypass.state.Load().On
	if d.audit != nil {
		l.AuditLost = d.audit.Lost()
	}
	if d.traces != nil {
		l.SpansLost = d.traces.Lost()
	}
	l.GuestMemory, l.GuestMemoryLimit = d.engine.Memory()
	l.Ready = (backend == connectivity.Ready || backend == connectivity.Idle) && len(d.unready(false, false)) == 0 // idle: nobody has called yet
	return l
}

// levels returns the state of each plugin. It is for the goroutine of run.
func (s *slots) levels() []metrics.PluginLevels {
	all := make([]metrics.PluginLevels, 0, len(s.order))
	shown := slices.Clone(s.order)
	for _, p := range s.off {
		if p.description.Problem != nil {
			shown = append(shown, p)
		}
	}
	for _, p := range shown {
		one := metrics.PluginLevels{
			ID: p.id, State: string(p.met), LoadFailed: s.failure(p) != nil,
			Own: p.persistent.metrics.All(), OwnDropped: p.persistent.metrics.Dropped(),
		}
		if p.active != nil {
			one.Active = s.loader.info(p.active)
		}
		for _, v := range []*version{p.active, p.last, p.next} {
			if v != nil && v.loaded != nil {
				instances, memory := wasm.Usage(v.loaded.Plugin)
				one.Instances, one.Memory = one.Instances+instances, one.Memory+memory
			}
		}
		if m, there := s.loader.place(p); there && m.Breaker != nil {
			one.BreakerOpen = m.Breaker.Status().State != plugin.Closed
		}
		all = append(all, one)
	}
	return all
}

// info says which version this is.
func (l *loader) info(v *version) *metrics.Info {
	d := v.description
	return &metrics.Info{Kind: l.kind(d).name(), Version: v.loaded.Manifest().Version, Digest: d.Digest, SettingsDigest: d.Settings}
}

// ask returns what f returns in the goroutine of run. ok is false if the slots have ended.
func ask[T any](s *slots, f func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	if !s.post(func(context.Context) { answers <- f() }) {
		return answer, false
	}
	return <-answers, true
}
