package metrics

import (
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// outcomes are those of observe.Outcome.
var outcomes = [...]observe.Outcome{observe.OK, observe.Rejected, observe.Failed, observe.NotCalled}

// phases are the values of the label phase.
var phases = [...]string{"pre", "post", "other"}

func phaseOf(h abi.Hook) int {
	switch h.Info().Phase {
	case abi.Before:
		return 0
	case abi.After:
		return 1
	}
	return 2
}

// pluginSeries are the series of a plugin that calls need at once.
type pluginSeries struct {
	id              string
	born            uint64 // the scrapes that were before it
	families        families
	calls           [len(outcomes)]prometheus.Counter
	hooks           [64]atomic.Pointer[prometheus.Counter]
	durations       [len(phases)]atomic.Pointer[prometheus.Observer]
	fuel, hostCalls prometheus.Counter
	changes         prometheus.Counter
	failure         atomic.Pointer[Failure] // the last one
}

// clean makes a label of the id of a plugin, which is the name of a file.
func clean(id string) string { return strings.ToValidUTF8(id, "\uFFFD") }

// plugin returns the series of a plugin.
func (m *Metrics) plugin(id string) *pluginSeries {
	if p := (*m.plugins.Load())[id]; p != nil {
		return p
	}
	id = clean(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(*m.plugins.Load())
	if p := all[id]; p != nil {
		return p
	}
	f := m.families
	p := &pluginSeries{
		id: id, born: m.scrapes.Load(), families: f, changes: f.counter("wasmproxy_plugin_changes_total").WithLabelValues(id),
		fuel: f.counter("wasmproxy_plugin_fuel_total").WithLabelValues(id), hostCalls: f.counter("wasmproxy_plugin_host_calls_total").WithLabelValues(id),
	}
	for i, o := range outcomes {
		p.calls[i] = f.counter("wasmproxy_plugin_calls_total").WithLabelValues(id, label(o))
	}
	f.begin(id)
	all[id] = p
	m.plugins.Store(&all)
	return p
}

// drop ends the series of a plugin.
func (m *Metrics) drop(id string) {
	id = clean(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(*m.plugins.Load())
	delete(all, id)
	m.plugins.Store(&all)
	m.families.drop(id)
}

// prune ends the series of plugins that are not among these, if they were there before the
// scrape: a call that ended after its plugin was removed has made them again.
func (m *Metrics) prune(there map[string]bool, scrape uint64) {
	for id, p := range *m.plugins.Load() {
		if !there[id] && p.born < scrape {
			m.drop(id)
		}
	}
}

func (p *pluginSeries) used(fuel, hostCalls int64) {
	p.fuel.Add(float64(max(fuel, 0)))
	p.hostCalls.Add(float64(max(hostCalls, 0)))
}

// label is the outcome's, of which Prometheus' users expect no spaces.
func label(o observe.Outcome) string {
	if o == observe.NotCalled {
		return "not_called"
	}
	return string(o)
}

func (m *Metrics) hookCalled(e *observe.HookCalled) {
	p := m.plugin(e.Plugin)
	once(&p.hooks[e.Hook], func() prometheus.Counter {
		return p.families.counter("wasmproxy_hook_calls_total").WithLabelValues(p.id, e.Hook.String())
	}).Inc()
	for i := range outcomes {
		if outcomes[i] == e.Outcome {
			p.calls[i].Inc()
		}
	}
	total := &m.hooks[e.Hook]
	total.called.Add(1)
	if e.Outcome != observe.NotCalled {
		phase := phaseOf(e.Hook)
		once(&p.durations[phase], func() prometheus.Observer {
			return p.families.histogram("wasmproxy_hook_duration_seconds").WithLabelValues(p.id, phases[phase])
		}).Observe(e.Duration.Seconds())
		p.used(e.Fuel, e.HostCalls)
		p.changes.Add(float64(e.Changes))
	}
	if e.Outcome == observe.OK || e.Outcome == observe.Rejected {
		return
	}
	total.failed.Add(1)
	if e.Outcome == observe.Failed {
		p.families.counter("wasmproxy_plugin_failures_total").WithLabelValues(p.id, e.Hook.String(), string(e.Class)).Inc()
		p.failure.Store(&Failure{At: e.Start.Add(e.Duration), Hook: e.Hook, Class: e.Class, Err: e.Err})
	}
}

// Failure is the last failure of a plugin.
type Failure struct {
	At    time.Time
	Hook  abi.Hook
	Class observe.Class
	Err   error
}

// Totals are the counts of a plugin since it was installed, or since the start.
type Totals struct {
	Calls, Failures uint64        // with those that its circuit breaker did not let through
	Rejections      uint64        // of calls
	Exempted        uint64        // of these failures and rejections: their calls went on, in exempt namespaces
	Conflicts       uint64        // fields that it wanted to have another value than an earlier plugin
	Fights          uint64        // cgroup files that are left alone since something else overwrites them
	WriteFailures   uint64        // of cgroup files
	Openings        uint64        // of its circuit breaker
	P50, P99        time.Duration // estimates of how long a call takes, in any hook; 0 if there was none
	Last            *Failure      // nil if there was none
}

// Plugin returns the counts of a plugin.
func (m *Metrics) Plugin(id string) (t Totals) {
	p := (*m.plugins.Load())[clean(id)]
	if p == nil {
		return t
	}
	t.Last = p.failure.Load()
	counted := func(name string) uint64 { return uint64(valueOf(p.families.counter(name).WithLabelValues(p.id))) }
	t.Exempted, t.Conflicts = counted("wasmproxy_calls_exempted_total"), counted("wasmproxy_plugin_conflicts_total")
	t.Openings = counted("wasmproxy_plugin_breaker_openings_total")
	t.Fights, t.WriteFailures = counted("wasmproxy_cgroup_fights_total"), counted("wasmproxy_cgroup_write_failures_total")
	for i, c := range p.calls {
		n := uint64(valueOf(c))
		t.Calls += n
		switch outcomes[i] {
		case observe.Rejected:
			t.Rejections += n
		case observe.Failed, observe.NotCalled:
			t.Failures += n
		}
	}
	var durations []*dto.Histogram
	for i := range p.durations {
		if o := p.durations[i].Load(); o != nil {
			durations = append(durations, histogramOf(*o))
		}
	}
	t.P50, t.P99 = quantile(0.5, durations), quantile(0.99, durations)
	return t
}
