package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Levels returns the state of the proxy at one moment, and the metrics that plugins have themselves, by their ids. NotReady
// of the state has no reason that only the container runtime's answer tells, nor that files of plugins or settings are bad:
// these have metrics of their own. Its list of plugins is nil while they are not known.
type Levels func() (*status.Status, map[string]*plugin.Metrics)

// scrape collects everything that the table has. It reads the levels once.
type scrape struct{ *Metrics }

// Describe implements prometheus.Collector. Plugins' own metrics are not known before they are
// collected.
func (s *scrape) Describe(to chan<- *prometheus.Desc) {
	for _, c := range s.families.all {
		c.Describe(to)
	}
	for _, l := range s.families.levels {
		to <- l.desc
	}
}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(to chan<- prometheus.Metric) {
	now := s.scrapes.Add(1)
	l, own := s.levels()
	plugins := slices.DeleteFunc(l.Plugins.Plugins, func(p status.Plugin) bool { return p.State == status.Disabled && p.Failure == nil })
	there := make(map[string]bool, len(plugins))
	for i := range plugins {
		there[clean(plugins[i].ID)] = true
	}
	for id, p := range *s.plugins.Load() { // a call that ended after its plugin was removed has made them again
		if plugins != nil && !there[id] && p.born < now {
			s.drop(id)
		}
	}
	for _, c := range s.families.all {
		c.Collect(to)
	}

	e := emitter{s.families, to}
	e.emit("wasmproxy_kubelet_connections", float64(l.Connections))
	e.emit("wasmproxy_post_hook_queue_length", float64(l.Queued))
	e.emit("wasmproxy_plugins_memory_bytes", float64(l.Guests.Memory))
	e.emit("wasmproxy_plugins_memory_limit_bytes", float64(l.Guests.Limit))
	e.emit("wasmproxy_backend_connected", truth(l.Backend.Connected))
	e.emit("wasmproxy_backend_disconnects_total", float64(l.Backend.Disconnects))
	e.emit("wasmproxy_store_pods", float64(l.Store.Pods))
	e.emit("wasmproxy_store_containers", float64(l.Store.Containers))
	e.emit("wasmproxy_store_filled", truth(l.Store.State != "filling"))
	e.emit("wasmproxy_ledger_objects", float64(l.Values.Objects))
	e.emit("wasmproxy_ledger_values", float64(l.Values.Wanted))
	e.emit("wasmproxy_audit_lines_lost_total", float64(l.Lost.AuditLines))
	e.emit("wasmproxy_trace_spans_lost_total", float64(l.Lost.Spans))
	e.emit("wasmproxy_bypass", truth(l.Bypass.On))
	e.emit("wasmproxy_ready", truth(len(l.NotReady) == 0))
	e.emit("wasmproxy_settings_load_failed", truth(l.Settings.Error != ""))
	e.emit("wasmproxy_settings_changed", truth(l.Settings.Changed))
	e.emit("wasmproxy_state_saved", truth(l.Values.Saved))
	e.emit("wasmproxy_ledger_values_not_held", float64(l.Values.NotHeld[""]), "")

	for i := range plugins {
		p := &plugins[i]
		id := clean(p.ID)
		e.emit("wasmproxy_plugin_state", 1, id, string(p.State))
		if a := p.Active; a != nil {
			e.emit("wasmproxy_plugin_info", 1, id, p.Kind, clean(a.Version), a.Digest, a.Settings)
		}
		e.emit("wasmproxy_plugin_load_failed", truth(p.Failure != nil), id)
		if !p.Probation.IsZero() {
			e.emit("wasmproxy_plugin_on_probation", 1, id)
		}
		e.emit("wasmproxy_plugin_breaker_open", truth(p.Breaker != "" && p.Breaker != "closed"), id)
		e.emit("wasmproxy_plugin_instances", float64(p.Instances), id)
		e.emit("wasmproxy_plugin_memory_bytes", float64(p.Memory), id)
		e.emit("wasmproxy_ledger_values_not_held", float64(l.Values.NotHeld[p.ID]), id)
	}
	e.own(plugins, own)
}

// emitter hands levels to whoever asks for them.
type emitter struct {
	families
	to chan<- prometheus.Metric
}

func (e emitter) emit(name string, v float64, labels ...string) {
	l := e.levels[name]
	e.to <- prometheus.MustNewConstMetric(l.desc, l.of, v, labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
