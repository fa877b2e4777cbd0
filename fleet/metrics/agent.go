package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// Agent is what an agent tells. It is safe for concurrent use.
type Agent struct {
	plugins                           *prometheus.GaugeVec // by phase
	listed, proxy, failing, unfetched prometheus.Gauge
	fetchFailures, reports            prometheus.Counter
}

// NewAgent returns one that has counted nothing.
func NewAgent() *Agent {
	return &Agent{
		plugins:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "wasmproxy_fleet_agent_plugins", Help: "Plugins of the node that the fleet has brought, by phase."}, []string{"phase"}),
		listed:        gauge("wasmproxy_fleet_agent_listed", "1 if the API server has listed the NodePlugins since the agent's start, else 0: the node keeps what it has."),
		proxy:         gauge("wasmproxy_fleet_agent_proxy_answers", "1 while the proxy answers on its status socket, else 0."),
		failing:       gauge("wasmproxy_fleet_agent_failing", "1 while the agent cannot do all that the cluster wants, else 0: its log says why."),
		unfetched:     gauge("wasmproxy_fleet_agent_unfetched_revisions", "Revisions that could not be fetched at the last try, and are tried again."),
		fetchFailures: counter("wasmproxy_fleet_agent_fetch_failures_total", "Tries to fetch a revision that failed."),
		reports:       counter("wasmproxy_fleet_agent_reports_total", "Writes of the node's PluginNode."),
	}
}

// Handler serves them.
func (a *Agent) Handler() http.Handler {
	return handler(registry(a.plugins, a.listed, a.proxy, a.failing, a.unfetched, a.fetchFailures, a.reports))
}

// Round is what a round of an agent came to.
type Round struct {
	Listed, ProxyAnswers, Failed bool
	Unfetched                    int // revisions whose last try failed
	Phases                       map[v1alpha1.Phase]int
}

// Round tells what the last round came to.
func (a *Agent) Round(r Round) {
	a.listed.Set(truth(r.Listed))
	a.proxy.Set(truth(r.ProxyAnswers))
	a.failing.Set(truth(r.Failed))
	a.unfetched.Set(float64(r.Unfetched))
	for _, phase := range v1alpha1.Phases {
		a.plugins.WithLabelValues(string(phase)).Set(float64(r.Phases[phase]))
	}
}

// FetchFailed counts a try to fetch a revision that failed.
func (a *Agent) FetchFailed() { a.fetchFailures.Inc() }

// Reported counts a write of the PluginNode.
func (a *Agent) Reported() { a.reports.Inc() }
