package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// closeTime is how long ticks and loads may take at the end. With the drain timeout, and the second
// that sinks have, it is less than the 5 s for which kubelet's connection waits in a restart.
const closeTime = 500 * time.Millisecond

// closeSinks ends the sinks at the same time, since each waits for others for up to a second.
func (d *daemon) closeSinks() error {
	var traces, audit error
	var all sync.WaitGroup
	if d.traces != nil {
		all.Go(func() { traces = d.traces.Close() })
	}
	if d.audit != nil {
		all.Go(func() { audit = d.audit.Close() })
	}
	all.Wait()
	return errors.Join(traces, audit)
}

// close ends what open made, as far as it came. No call is in flight.
func (d *daemon) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if d.slots != nil && !d.slots.Close(ctx) {
		d.busy = true
	}
	var ends []func() error
	if d.engine != nil && !d.busy { // whose code may be running
		ends = append(ends, func() error { return d.engine.Close(ctx) })
	}
	if d.reconciler != nil {
		ends = append(ends, d.reconciler.Close)
	}
	if d.slots != nil {
		ends = append(ends, func() error { d.slots.Save(ctx); return nil })
	}
	ends = append(ends, d.closeSinks)
	for _, conn := range d.conns {
		ends = append(ends, conn.Close)
	}
	for _, end := range ends {
		if err := end(); err != nil {
			d.observer.Observe(ctx, &observe.CloseFailed{Err: err})
		}
	}
}
