package slots

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Metrics returns what each plugin counts and measures itself, by id. There is none if the slots have ended.
func (s *Slots) Metrics(ctx context.Context) map[string]*plugin.Metrics {
	own, _ := ask(ctx, s, func() (map[string]*plugin.Metrics, error) {
		all := make(map[string]*plugin.Metrics, len(s.all))
		for id, p := range s.all {
			all[id] = p.persistent.Metrics
		}
		return all, nil
	})
	return own
}

// Counted returns what plugins have counted and measured, by plugin, once Run has ended.
func (s *Slots) Counted() map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for id, p := range s.all {
		of := map[string]int64{}
		for _, m := range p.persistent.Metrics.All() {
			of[m.Name] = m.Value
		}
		if n := p.persistent.Metrics.Dropped(); n > 0 {
			of["(dropped)"] = n // of another kind, or of too many names
		}
		if len(of) > 0 {
			all[id] = of
		}
	}
	return all
}
