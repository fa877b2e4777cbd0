package daemon

import (
	"context"

	"google.golang.org/grpc/connectivity"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// levels is metrics.Levels.
func (d *daemon) levels() (*status.Status, map[string]*plugin.Metrics) {
	// At the end the plugins are not known.
	s, _ := d.snapshot(context.Background())
	if b := d.backend.conn.GetState(); b != connectivity.Ready && b != connectivity.Idle { // idle: nobody has called yet
		s.NotReady = []string{"there is no connection to the container runtime"}
	}
	s.NotReady = append(s.NotReady, d.unready(false, false)...)
	own, _ := ask(d.slots, func() map[string]*plugin.Metrics {
		all := make(map[string]*plugin.Metrics, len(d.slots.all))
		for id, p := range d.slots.all {
			all[id] = p.persistent.metrics
		}
		return all
	})
	return s, own
}

// ask returns what f returns in the goroutine of run. ok is false if the slots have ended.
func ask[T any](s *slots, f func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	if !s.post(func(context.Context) { answers <- f() }) {
		return answer, false
	}
	return <-answers, true
}
