package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Levels is the state of the proxy at one moment.
type Levels struct {
	Plugins []PluginLevels // that have files, in the order of the chain

	Connections      int  // of clients
	BackendConnected bool // there is a connection to the container runtime
	StoreFilled      bool // or nothing needs it
	Pods, Containers int  // in the store
	LedgerObjects    int  // that have values
	LedgerValues     int
	QueueLength      int   // of post hooks
	GuestMemory      int64 // bytes
	GuestMemoryLimit int64 // bytes
	AuditLost        int64 // lines of the audit log
	SpansLost        int64 // of traces
	Bypass           bool
	SettingsRefused  bool // the settings file, as it is now, cannot be used
	SettingsChanged  bool // it has other settings than the active ones
	Ready            bool // but for what the container runtime would answer
	StateSaved       bool // state-dir has what it is to have

	// NotHeld are the values that do not hold, by plugin; kubelet's have an empty one.
	NotHeld map[string]int
}

// PluginLevels is the state of a plugin at one moment.
type PluginLevels struct {
	ID          string
	State       string // as package status names it
	LoadFailed  bool   // the present files cannot be loaded
	Active      *Info  // nil if no version is active
	BreakerOpen bool   // or half-open
	Instances   int
	Memory      int64           // bytes
	Own         []plugin.Series // that it counts and measures itself
	OwnDropped  int64           // values of its own metrics
}

// Info says which version of a plugin is active. What the plugin does not have is empty.
type Info struct {
	Kind           string
	Version        string // of its manifest
	Digest         string // of its module, SHA-256 in hex
	SettingsDigest string // of its JSON, likewise
}

// scrape collects everything that the table has. It reads the levels once.
type scrape struct{ *Metrics }

// Describe implements prometheus.Collector. Plugins' own metrics are not known before they are
// collected.
func (s *scrape) Describe(to chan<- *prometheus.Desc) {
	for _, c := range s.families.collectors() {
		c.Describe(to)
	}
	for _, l := range s.families.levels {
		to <- l.desc
	}
}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(to chan<- prometheus.Metric) {
	now := s.scrapes.Add(1)
	l := s.levels()
	there := make(map[string]bool, len(l.Plugins))
	for i := range l.Plugins {
		l.Plugins[i].ID = clean(l.Plugins[i].ID)
		there[l.Plugins[i].ID] = true
	}
	s.prune(there, now)
	for _, c := range s.families.collectors() {
		c.Collect(to)
	}
	e := emitter{s.families, to}
	e.node(l)
	for i := range l.Plugins {
		e.plugin(&l.Plugins[i])
		e.emit("wasmproxy_ledger_values_not_held", float64(l.NotHeld[l.Plugins[i].ID]), l.Plugins[i].ID)
	}
	e.own(l.Plugins)
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

func (e emitter) node(l Levels) {
	e.emit("wasmproxy_kubelet_connections", float64(l.Connections))
	e.emit("wasmproxy_post_hook_queue_length", float64(l.QueueLength))
	e.emit("wasmproxy_plugins_memory_bytes", float64(l.GuestMemory))
	e.emit("wasmproxy_plugins_memory_limit_bytes", float64(l.GuestMemoryLimit))
	e.emit("wasmproxy_backend_connected", truth(l.BackendConnected))
	e.emit("wasmproxy_store_pods", float64(l.Pods))
	e.emit("wasmproxy_store_containers", float64(l.Containers))
	e.emit("wasmproxy_store_filled", truth(l.StoreFilled))
	e.emit("wasmproxy_ledger_objects", float64(l.LedgerObjects))
	e.emit("wasmproxy_ledger_values", float64(l.LedgerValues))
	e.emit("wasmproxy_audit_lines_lost_total", float64(l.AuditLost))
	e.emit("wasmproxy_trace_spans_lost_total", float64(l.SpansLost))
	e.emit("wasmproxy_bypass", truth(l.Bypass))
	e.emit("wasmproxy_ready", truth(l.Ready))
	e.emit("wasmproxy_settings_load_failed", truth(l.SettingsRefused))
	e.emit("wasmproxy_settings_changed", truth(l.SettingsChanged))
	e.emit("wasmproxy_state_saved", truth(l.StateSaved))
	e.emit("wasmproxy_ledger_values_not_held", float64(l.NotHeld[""]), "")
}

func (e emitter) plugin(p *PluginLevels) {
	e.emit("wasmproxy_plugin_state", 1, p.ID, p.State)
	if a := p.Active; a != nil {
		e.emit("wasmproxy_plugin_info", 1, p.ID, a.Kind, clean(a.Version), a.Digest, a.SettingsDigest)
	}
	e.emit("wasmproxy_plugin_load_failed", truth(p.LoadFailed), p.ID)
	e.emit("wasmproxy_plugin_breaker_open", truth(p.BreakerOpen), p.ID)
	e.emit("wasmproxy_plugin_instances", float64(p.Instances), p.ID)
	e.emit("wasmproxy_plugin_memory_bytes", float64(p.Memory), p.ID)
	e.emit("wasmproxy_plugin_own_values_dropped_total", float64(p.OwnDropped), p.ID)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
