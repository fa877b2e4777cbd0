package daemon

import (
	"log/slog"
	"maps"
	"slices"

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
func (s *slots) metrics() []any {
	var all []any
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		var of []any
		for _, m := range s.all[id].kept.metrics.All() {
			of = append(of, slog.Int64(m.Name, m.Value))
		}
		if n := s.all[id].kept.metrics.Dropped(); n > 0 {
			of = append(of, slog.Int64("(dropped)", n)) // of another kind, or of too many names
		}
		if len(of) > 0 {
			all = append(all, slog.Group(id, of...))
		}
	}
	return all
}
