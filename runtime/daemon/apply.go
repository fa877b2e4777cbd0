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
	d.install(ctx, members)
}

// refuse lets the members that are not there refuse their hooks. They need
// neither the store nor the backend, and nobody waits for either.
func (d *daemon) refuse(members []member) {
	_, absent := split(members)
	d.current.swap(d.generation(absent))
}

// install makes a chain of the members. Before the first plugin gets an event
// the store follows calls and holds what the backend has; with no plugin left
// nothing is followed, nothing is kept, and every byte passes.
func (d *daemon) install(ctx context.Context, members []member) {
	if len(members) == 0 {
		d.current.swap(nil)
		d.store.Clear()
		if d.following.Swap(false) {
			d.log.InfoContext(ctx, "no plugin in force, every call passes as it comes")
		}
		return
	}
	if !d.following.Swap(true) {
		d.refuse(members) // and the store follows
		d.backend.fill(ctx)
		d.describeNode(ctx)
	}
	d.current.swap(d.generation(members))
	present, absent := split(members)
	d.log.InfoContext(ctx, "plugins in force", "plugins", ids(present), "refusing", ids(absent))
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

// describeNode finds out what plugins may know of the node.
func (d *daemon) describeNode(ctx context.Context) {
	var node intercept.Node
	if d.cgroups != nil {
		node.CgroupVersion = d.cgroups.Version()
	}
	node.RuntimeName, node.RuntimeVersion = d.backend.version(ctx)
	d.node.Store(&node)
}

// generation makes the routes of these members, and keeps their plugins.
func (d *daemon) generation(members []member) *generation {
	plugins := make([]*loaded, len(members))
	chain := make([]plugin.Member, len(members))
	for i, m := range members {
		plugins[i], chain[i] = m.loaded, m.Member
	}
	g := newGeneration(plugins)
	g.route = intercept.Router(intercept.Options{
		Log: d.log, Chain: plugin.NewChain(d.log, d.files(), d.counts.observe, chain...),
		Store: d.store, Backend: d.backend.client, Cgroups: d.cgroups, Node: &d.node, Turns: d.turns, CallTime: callTime(members),
		Keep: func() func() { g.acquire(); return g.release }, // asked by a call, which keeps g
	})
	return g
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
	}
}

// drain lets post hooks end, as long as calls in flight may take.
func (d *daemon) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.config.DrainTimeout)
	defer cancel()
	if err := d.turns.Drain(ctx); err != nil {
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
		slog.Group("hooks", attrs(&d.counts.asked)...), slog.Group("hook_failures", attrs(&d.counts.failed)...))
}

// close ends what open made, as far as it came. No call is in flight.
func (d *daemon) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d.current.swap(nil)
	if d.loader != nil {
		d.loader.close()
	}
	var ends []func() error
	if d.engine != nil {
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
