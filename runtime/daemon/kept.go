package daemon

import (
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// kept is what a plugin has on the host: it outlives a reload, until the plugin's
// files go.
type kept struct {
	values  *plugin.KV
	metrics *plugin.Metrics
}

func newKept() kept { return kept{plugin.NewKV(), plugin.NewMetrics()} }

// metrics returns what plugins have counted and measured, by plugin.
func (s *slots) metrics() map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for id, p := range s.all {
		of := map[string]int64{}
		for _, m := range p.kept.metrics.All() {
			of[m.Name] = m.Value
		}
		if n := p.kept.metrics.Dropped(); n > 0 {
			of["(dropped)"] = n // of another kind, or of too many names
		}
		if len(of) > 0 {
			all[id] = of
		}
	}
	return all
}
