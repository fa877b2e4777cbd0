package metrics

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// outcomes are those of observe.Outcome.
var outcomes = [...]observe.Outcome{observe.OK, observe.Rejected, observe.Failed, observe.NotCalled}

// phases are the values of the label phase.
var phases = [...]string{"pre", "post", "other"}

// pluginSeries are the series of a plugin that calls need at once.
type pluginSeries struct {
	id              string
	born            uint64 // the scrapes that were before it
	calls           [len(outcomes)]prometheus.Counter
	hooks           [64]atomic.Pointer[prometheus.Counter]
	durations       [len(phases)]atomic.Pointer[prometheus.Observer]
	fuel, hostCalls prometheus.Counter
	changes         prometheus.Counter
	failure         atomic.Pointer[status.Failure] // the last one
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
		id: id, born: m.scrapes.Load(), changes: f.counters["wasmproxy_plugin_changes_total"].WithLabelValues(id),
		fuel: f.counters["wasmproxy_plugin_fuel_total"].WithLabelValues(id), hostCalls: f.counters["wasmproxy_plugin_host_calls_total"].WithLabelValues(id),
	}
	for i, o := range outcomes {
		label := strings.ReplaceAll(string(o), " ", "_") // as users of Prometheus expect
		p.calls[i] = f.counters["wasmproxy_plugin_calls_total"].WithLabelValues(id, label)
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
	for _, vec := range m.families.ofPlugins {
		vec.DeletePartialMatch(prometheus.Labels{"plugin": id})
	}
}

func (p *pluginSeries) used(fuel, hostCalls int64) {
	p.fuel.Add(float64(max(fuel, 0)))
	p.hostCalls.Add(float64(max(hostCalls, 0)))
}

func (m *Metrics) hookCalled(e *observe.HookCalled) {
	p := m.plugin(e.Plugin)
	once(&p.hooks[e.Hook], func() prometheus.Counter {
		return m.families.counters["wasmproxy_hook_calls_total"].WithLabelValues(p.id, e.Hook.String())
	}).Inc()
	for i := range outcomes {
		if outcomes[i] == e.Outcome {
			p.calls[i].Inc()
		}
	}
	total := &m.hooks[e.Hook]
	total.called.Add(1)
	if e.Outcome != observe.NotCalled {
		phase := 2
		switch e.Hook.Info().Phase {
		case abi.Before:
			phase = 0
		case abi.After:
			phase = 1
		}
		once(&p.durations[phase], func() prometheus.Observer {
			return m.families.histograms["wasmproxy_hook_duration_seconds"].WithLabelValues(p.id, phases[phase])
		}).Observe(e.Duration.Seconds())
		p.used(e.Fuel, e.HostCalls)
		p.changes.Add(float64(e.Changes))
	}
	if e.Outcome == observe.OK || e.Outcome == observe.Rejected {
		return
	}
	total.failed.Add(1)
	if e.Outcome == observe.Failed {
		m.families.counters["wasmproxy_plugin_failures_total"].WithLabelValues(p.id, e.Hook.String(), string(e.Class)).Inc()
		p.failure.Store(&status.Failure{
			At: e.Start.Add(e.Duration), Hook: e.Hook.String(), Class: string(e.Class), Error: plugin.Printable(e.Err.Error(), 1<<10),
		})
	}
}

// once returns what at has, or what of returns, which it keeps for the next time. It is the same series
// for all who come at once.
func once[T any](at *atomic.Pointer[T], of func() T) T {
	v := at.Load()
	if v == nil {
		made := of()
		v = &made
		at.Store(v)
	}
	return *v
}

// Openings returns how often the circuit breaker of a plugin has opened, of those counts that Plugin returns.
func (m *Metrics) Openings(id string) uint64 {
	if (*m.plugins.Load())[clean(id)] == nil {
		return 0
	}
	return m.counted("wasmproxy_plugin_breaker_openings_total", clean(id))
}

func (m *Metrics) counted(name, id string) uint64 {
	return uint64(valueOf(m.families.counters[name].WithLabelValues(id)))
}

// Plugin returns the counts of a plugin since it was installed, or since the start.
func (m *Metrics) Plugin(id string) (t status.Counts) {
	p := (*m.plugins.Load())[clean(id)]
	if p == nil {
		return t
	}
	t.LastError = p.failure.Load()
	t.Exempted, t.Conflicts = m.counted("wasmproxy_calls_exempted_total", p.id), m.counted("wasmproxy_plugin_conflicts_total", p.id)
	t.Fights, t.WriteFailures = m.counted("wasmproxy_cgroup_fights_total", p.id), m.counted("wasmproxy_cgroup_write_failures_total", p.id)
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
	for _, h := range abi.Hooks {
		if c := p.hooks[h.Hook].Load(); c != nil && h.Phase == abi.Before {
			t.Refusable += uint64(valueOf(*c))
		}
	}
	var durations []*dto.Histogram
	for i := range p.durations {
		if o := p.durations[i].Load(); o != nil {
			var d dto.Metric
			_ = (*o).(prometheus.Metric).Write(&d) // it cannot fail
			durations = append(durations, d.GetHistogram())
		}
	}
	t.P50, t.P99 = quantile(0.5, durations), quantile(0.99, durations)
	return t
}
