package daemon

import (
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// persistent is a plugin's state on the host. It outlives a reload, until the plugin's
// files go.
type persistent struct {
	values  *plugin.KV
	metrics *plugin.Metrics
}

func newPersistent() persistent { return persistent{plugin.NewKV(), plugin.NewMetrics()} }

// metrics returns what plugins have counted and measured, by plugin.
func (s *slots) metrics() map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for id, p := range s.all {
		of := map[string]int64{}
		for _, m := range p.persistent.metrics.All() {
			of[m.Name] = m.Value
		}
		if n := p.persistent.metrics.Dropped(); n > 0 {
			of["(dropped)"] = n // of another kind, or of too many names
		}
		if len(of) > 0 {
			all[id] = of
		}
	}
	return all
}
