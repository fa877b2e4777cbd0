package daemon

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/slots"
)

// operators serve from the daemon's state. On metrics-listen, reasons have no errors of plugins.
func (d *daemon) operators() *operators {
	all := admin.Sources{
		Observer: d.observer, Explain: d.explain, Metrics: d.metrics.Handler(),
		Healthy: d.selfCheck, NotReady: func(ctx context.Context) []string { return d.notReady(ctx, true) },
		Bypass: d.slots.Bypass.Status, Status: d.status, Plugins: d.plugins,
		SetBypass: d.slots.Bypass.Set, Retry: d.slots.Retry, Shadow: d.slots.Shadows.Report,
		Record: slots.Recordings{Slots: d.slots, Version: d.version}.Record,
	}
	public := all
	public.NotReady = func(ctx context.Context) []string { return d.notReady(ctx, false) }
	return &operators{d.config, d.adminRetry, all, public}
}

// notReady returns the reasons for which calls do not get what they are to get: the container
// runtime does not answer, its pods are not known, or a plugin that must not be ignored is not
// active. With why come the errors of plugins, whose text may be a guest's.
func (d *daemon) notReady(ctx context.Context, why bool) (reasons []string) {
	if _, err := d.reconciler.Backend.Version(ctx); err != nil {
		reasons = append(reasons, "the container runtime does not answer: "+plugin.Printable(err.Error(), 1<<10))
	}
	return append(reasons, d.unready(why, true)...)
}

// unready is notReady without the container runtime's answer. It does not wait for the runtime. Without files, bad
// files of settings and plugins are not among the reasons.
func (d *daemon) unready(why, files bool) (reasons []string) {
	for _, err := range d.slots.Unread() {
		if why {
			reasons = append(reasons, "a directory of plugins cannot be read or is not trusted, its plugins stay as they are: "+plugin.Printable(err.Error(), 1<<10))
		} else {
			reasons = append(reasons, "a directory of plugins cannot be read or is not trusted, its plugins stay as they are")
		}
	}
	if d.reconciler.Following.Load() && d.reconciler.Backend.Behind() {
		reasons = append(reasons, "the pods of the container runtime have not been read yet")
	}
	if files {
		reasons = append(reasons, settingsReasons(d.settings.State(), why)...)
	}
	return append(reasons, d.slots.Missing(why, files)...)
}
