package daemon

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// levels is metrics.Levels.
func (d *daemon) levels() (*status.Status, map[string]*plugin.Metrics) {
	// At the end the plugins are not known.
	s, _ := d.snapshot(context.Background())
	if !d.reconciler.Backend.Reachable() {
		s.NotReady = []string{"there is no connection to the container runtime"}
	}
	s.NotReady = append(s.NotReady, d.unready(false, false)...)
	return s, d.slots.Metrics()
}
