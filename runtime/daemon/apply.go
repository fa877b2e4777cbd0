package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// apply makes these descriptions the plugins of every call from now on. What
// does not load is said, and leaves what was there before.
func (d *daemon) apply(ctx context.Context, descriptions []registry.Description) {
	if pending := d.loader.pending(descriptions); len(pending) > 0 {
		d.install(ctx, pending)
	}
	members, errs := d.loader.load(ctx, descriptions)
	for _, err := range errs {
		d.log.ErrorContext(ctx, "plugin not loaded", "err", err)
	}
	if members = d.install(ctx, members); len(members) > 0 {
		present, absent := split(members)
		d.log.InfoContext(ctx, "plugins in force", "plugins", ids(present), "refusing", ids(absent))
	}
}

// refuse lets the members that are not there refuse their hooks. They need
// neither the store nor the backend, and nobody waits for either.
func (d *daemon) refuse(members []member) {
	_, absent := split(members)
	d.swap(d.generation(absent))
}

// install makes a chain of the members. Before the first plugin gets an event
// the store follows calls and holds what the backend has; with no plugin left
// nothing is followed, nothing is kept, and every byte passes. The members in
// force are returned: one that could not be synchronized is what it was before.
func (d *daemon) install(ctx context.Context, members []member) []member {
	if len(members) == 0 {
		d.swap(nil)
		d.store.Clear()
		if d.following.Swap(false) {
			d.log.InfoContext(ctx, "no plugin in force, every call passes as it comes")
		}
		return nil
	}
	if !d.following.Swap(true) {
		d.refuse(members) // and the store follows
		d.backend.fill(ctx)
		d.describeNode(ctx)
	}
	members = d.synchronize(ctx, members)
	d.swap(d.generation(members))
	d.sweeps.want()
	return members
}

// split tells the members that are there from those that only refuse.
func split(members []member) (present, absent []member) {
	for _, m := range members {
		if m.absent() {
			absent = append(absent, m)
		} else {
			present = append(present, m)
		}
	}
	return present, absent
}

// ids names the members in the order of the chain.
func ids(members []member) []string {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.ID
	}
	return all
}

// generation makes the routes of these members, and keeps their plugins.
func (d *daemon) generation(members []member) *generation {
	plugins := make([]*loaded, len(members))
	for i, m := range members {
		plugins[i] = m.loaded
	}
	g := newGeneration(plugins)
	g.members, g.ended = members, d.sweeps.want
	g.options = d.options(members)
	g.options.Keep = func() func() { g.acquire(); return g.release } // asked by a call, which keeps g
	g.options.Chain = g.options.NewChain(chained(g.options, members)...)
	g.route = intercept.Router(g.options)
	return g
}

// options are what these members' calls are intercepted with, but for the chain.
func (d *daemon) options(members []member) intercept.Options {
	return intercept.Options{
		Log: d.log, Store: d.store, Backend: d.backend.client, Cgroups: d.cgroups, Node: &d.node, Turns: d.turns, CallTime: callTime(members),
		NewChain: func(chain ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(d.log, d.files(), d.counts.observe, chain...)
		},
		AfterFailure: d.loader.koord.afterFailure(d.log, d.counts.observe, members),
		Synchronized: synchronized(members),
	}
}

// files is what plugins may write to; a nil *cgroup.FS is no Files.
func (d *daemon) files() plugin.Files {
	if d.cgroups == nil {
		return nil
	}
	return d.cgroups
}

// refill brings the store up to date after the backend came back, which may be
// another version of itself by now.
func (d *daemon) refill(ctx context.Context) {
	if d.following.Load() {
		d.backend.fill(ctx)
		d.describeNode(ctx)
		d.sweeps.want()
	}
}

// drain lets post hooks end, within what calls have left of the drain timeout, which
// began when the daemon was told to stop.
func (d *daemon) drain(ctx context.Context, stopping <-chan time.Time) {
	start := time.Now()
	select {
	case start = <-stopping:
	default: // the listener failed
	}
	ctx, cancel := context.WithDeadline(ctx, start.Add(d.config.DrainTimeout))
	defer cancel()
	if err := d.turns.Drain(ctx); err != nil {
		d.busy = true
		d.log.WarnContext(ctx, "post hooks did not end in time", "err", err)
	}
}

// report says what the run has served.
func (d *daemon) report() {
	var calls []any
	for method, n := range d.server.Calls() {
		calls = append(calls, slog.Uint64(method, n))
	}
	d.log.Info("served", slog.Group("calls", calls...),
		slog.Group("hooks", attrs(&d.counts.asked)...), slog.Group("hook_failures", attrs(&d.counts.failed)...),
		slog.Group("metrics", d.loader.metrics()...))
}

// endTicks waits for ticks under way. One that waits for a runtime which does not
// answer must not keep the process.
func (d *daemon) endTicks(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		d.ticking.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		d.busy = true
		d.log.WarnContext(ctx, "ticks did not end in time")
	}
}

// close ends what open made, as far as it came. No call is in flight.
func (d *daemon) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d.swap(nil)
	d.endTicks(ctx)
	if d.loader != nil {
		d.loader.close()
	}
	var ends []func() error
	if d.engine != nil && !d.busy { // whose code may be running
		ends = append(ends, func() error { return d.engine.Close(ctx) })
	}
	if d.cgroups != nil {
		ends = append(ends, d.cgroups.Close)
	}
	for _, conn := range d.conns {
		ends = append(ends, conn.Close)
	}
	for _, end := range ends {
		if err := end(); err != nil {
			d.log.Warn("closing at the end", "err", err)
		}
	}
}
