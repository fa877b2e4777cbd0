package metrics

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// Controller is what a controller tells. It is safe for concurrent use.
type Controller struct {
	leading, agents prometheus.Gauge
	failures        prometheus.Counter
	plugins         atomic.Pointer[[]Plugin]
}

// Plugin is a NodePlugin as the controller sees it.
type Plugin struct {
	Name  string
	State string    // reason of the condition Ready, such as Updating
	Step  time.Time // when the step of its update began; zero: there is no update
	Nodes v1alpha1.Nodes
}

// NewController returns one that does not lead.
func NewController() *Controller {
	return &Controller{
		leading:  gauge("wasmproxy_fleet_leading", "1 while this controller has the Lease, and works; else 0."),
		agents:   gauge("wasmproxy_fleet_agents", "Nodes whose agent has reported, as the controller that works sees it."),
		failures: counter("wasmproxy_fleet_failures_total", "Times that the controller could not do what a NodePlugin or a Node needs; its log says why."),
	}
}

// Handler serves them.
func (c *Controller) Handler() http.Handler {
	return handler(registry(c.leading, c.agents, c.failures, (*pluginCollector)(c)))
}

// Looked tells what the controller that works has seen.
func (c *Controller) Looked(plugins []Plugin, agents int) {
	c.leading.Set(1)
	c.agents.Set(float64(agents))
	c.plugins.Store(&plugins)
}

// Ended tells that another controller may work now.
func (c *Controller) Ended() {
	c.leading.Set(0)
	c.agents.Set(0)
	c.plugins.Store(nil)
}

// Failed counts something that could not be done.
func (c *Controller) Failed() { c.failures.Inc() }

// pluginCollector makes the series of plugins when they are asked for: those of a plugin that has gone end with it.
type pluginCollector Controller

var (
	pluginNodes = prometheus.NewDesc("wasmproxy_fleet_plugin_nodes", "Nodes of a NodePlugin as in its status: selected, fetched, updated, healthy, failing, silent, apart and away.", []string{"plugin", "state"}, nil)
	pluginState = prometheus.NewDesc("wasmproxy_fleet_plugin_state", "1 for the reason of the condition Ready of a NodePlugin, such as Updating.", []string{"plugin", "state"}, nil)
	pluginStep  = prometheus.NewDesc("wasmproxy_fleet_plugin_step_timestamp_seconds", "When the present step of a NodePlugin's update began, in seconds since 1970.", []string{"plugin"}, nil)
)

// Describe is called by the registry.
func (c *pluginCollector) Describe(to chan<- *prometheus.Desc) {
	to <- pluginNodes
	to <- pluginState
	to <- pluginStep
}

// Collect is called by the registry.
func (c *pluginCollector) Collect(to chan<- prometheus.Metric) {
	all := c.plugins.Load()
	if all == nil {
		return
	}
	send := func(of *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
	}
	for _, p := range *all {
		for state, n := range map[string]int32{
			"selected": p.Nodes.Selected, "fetched": p.Nodes.Fetched, "updated": p.Nodes.Updated, "healthy": p.Nodes.Healthy,
			"failing": p.Nodes.Failing, "silent": p.Nodes.Silent, "apart": p.Nodes.Apart, "away": p.Nodes.Away,
		} {
			send(pluginNodes, float64(n), p.Name, state)
		}
		if p.State != "" {
			send(pluginState, 1, p.Name, p.State)
		}
		if !p.Step.IsZero() {
			send(pluginStep, float64(p.Step.Unix()), p.Name)
		}
	}
}
