// Package metrics counts events, and serves what it counted to Prometheus. It is the only
// importer of Prometheus' client.
//
// What happens is counted when its event comes. A level, such as how many pods the store has,
// is read when somebody asks, from the one function that [New] gets.
//
// No label is a text of a pod, a container, an image or a client: a method that CRI does not
// have is "other". A plugin chooses the names and labels of its own metrics, of which it may
// have as many as package plugin lets it. The series of a plugin end with its files.
package metrics

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Metrics is a sink of events. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	families families
	levels   Levels

	methods map[string]*method // by full name; it does not change
	other   *method            // of all that are not in methods
	hooks   [64]hookTotals     // of the whole run

	overhead prometheus.Observer

	mu      sync.Mutex
	plugins atomic.Pointer[map[string]*pluginSeries] // by id; replaced, with mu held
	scrapes atomic.Uint64                            // counts when levels were read
}

// New returns a Metrics that has counted nothing. methods are those that calls may have beside
// CRI's. levels is called whenever somebody asks; it must not wait for a plugin or the backend.
func New(version string, levels Levels, methods ...map[string]cri.Shape) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), families: newFamilies(), levels: levels,
		methods: map[string]*method{}, other: &method{name: other},
	}
	m.plugins.Store(&map[string]*pluginSeries{})
	for _, shapes := range append(methods, cri.Shapes()) {
		for name, shape := range shapes {
			m.methods[name] = &method{name: name[strings.LastIndexByte(name, '/')+1:], unary: shape == cri.Unary}
		}
	}
	m.overhead = m.families.histograms["wasmproxy_call_overhead_seconds"].WithLabelValues()
	m.add("wasmproxy_cgroup_write_failures_total", 0, "") // of values that are no plugin's any more
	abiVersion := abi.Module + "." + strconv.Itoa(abi.Minor)
	m.families.gauges["wasmproxy_build_info"].WithLabelValues(version, runtime.Version(), abiVersion).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()))
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(&scrape{m})
	return m
}

// Handler serves the metrics, as text, OpenMetrics or protobuf. A metric that cannot be
// collected is left out.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
	})
}

// Wants implements observe.Observer.
func (m *Metrics) Wants(k observe.Kind) bool {
	switch k {
	case observe.KindHookCalled, observe.KindCallFinished, observe.KindFunctionCalled, observe.KindCgroupFileWritten:
		return true
	}
	return false
}

// Observe implements observe.Observer.
func (m *Metrics) Observe(_ context.Context, e observe.Event) {
	switch e := e.(type) {
	case *observe.CallFinished:
		m.callFinished(e)
	case *observe.HookCalled:
		m.hookCalled(e)
	case *observe.FunctionCalled:
		m.plugin(e.Plugin).used(e.Fuel, e.HostCalls)
	case *observe.PluginRemoved:
		m.drop(e.Plugin)
	default:
		m.count(e)
	}
}

// hookTotals are calls of plugins in one hook.
type hookTotals struct{ called, failed atomic.Uint64 }

// HookCalls returns how often plugins were called, and how often they failed, by the names of
// the hooks. A call that an open circuit breaker did not let through is a failure. A rejection
// is none.
func (m *Metrics) HookCalls() (called, failed map[string]uint64) {
	called, failed = map[string]uint64{}, map[string]uint64{}
	for _, h := range abi.Hooks {
		if n := m.hooks[h.Hook].called.Load(); n > 0 {
			called[h.Name] = n
		}
		if n := m.hooks[h.Hook].failed.Load(); n > 0 {
			failed[h.Name] = n
		}
	}
	return called, failed
}
