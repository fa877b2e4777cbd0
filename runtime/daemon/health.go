package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// operators serve from the daemon's state. On metrics-listen, reasons have no errors of plugins.
func (d *daemon) operators() *operators {
	all := admin.Sources{
		Observer: d.observer, Explain: d.explain, Metrics: d.metrics.Handler(),
		Healthy: d.selfCheck, NotReady: func(ctx context.Context) []string { return d.notReady(ctx, true) },
		Bypass: d.bypass.status, Status: d.status, Plugins: d.slots.snapshot,
		SetBypass: func(ctx context.Context, on bool, reason string) (status.Bypass, error) {
			return d.bypass.set(ctx, on, reason, d.slots)
		},
	}
	public := all
	public.NotReady = func(ctx context.Context) []string { return d.notReady(ctx, false) }
	return &operators{d.config, d.adminRetry, all, public}
}

// notReady returns the reasons for which calls do not get what they are to get: the container
// runtime does not answer, its pods are not known, or a plugin that must not be ignored is not
// active. With why come the errors of plugins, whose text may be a guest's.
func (d *daemon) notReady(ctx context.Context, why bool) (reasons []string) {
	if _, err := d.backend.version(ctx); err != nil {
		reasons = append(reasons, "the container runtime does not answer: "+plugin.Printable(err.Error(), 1<<10))
	}
	return append(reasons, d.unready(why, true)...)
}

// unready is notReady without the container runtime's answer. It does not wait for the runtime. Without files, bad
// files of settings and plugins are not among the reasons.
func (d *daemon) unready(why, files bool) (reasons []string) {
	for _, err := range d.files.Load().Unread {
		if why {
			reasons = append(reasons, "a directory of plugins cannot be read or is not trusted, its plugins stay as they are: "+plugin.Printable(err.Error(), 1<<10))
		} else {
			reasons = append(reasons, "a directory of plugins cannot be read or is not trusted, its plugins stay as they are")
		}
	}
	if d.following.Load() && d.backend.behind() {
		reasons = append(reasons, "the pods of the container runtime have not been read yet")
	}
	if files {
		reasons = append(reasons, settingsReasons(d.settings.State(), why)...)
	}
	missing, _ := ask(d.slots, func() []string { return d.slots.missing(why, files) })
	return append(reasons, missing...)
}

// missing says which plugins are not as their files say, what runs instead, and why if asked. It is for the
// goroutine of run. Without files it names only those with policy Fail that are not active.
func (s *slots) missing(why, files bool) (reasons []string) {
	for _, p := range slices.Concat(s.order, slices.Collect(maps.Values(s.off))) {
		name, failure := "plugin "+plugin.Printable(p.id, 1<<8), s.failure(p)
		switch v := p.awaited(); {
		case files && failure != nil:
			reason := name
			if why {
				reason += ": " + failure.Error
			} else {
				reason += ": its files cannot be loaded"
			}
			reasons = append(reasons, fmt.Sprintf("%s, since %s; %s", reason, failure.Since.UTC().Format(time.RFC3339), failure.Meanwhile))
		case v != nil && v.description.Policy == plugin.Fail:
			reasons = append(reasons, fmt.Sprintf("%s with policy Fail is %s until it is loaded", name, s.state(p)))
		}
	}
	return reasons
}

// failure says why a plugin is not as its files say; nil if it is, or is on its way to be.
func (s *slots) failure(p *slot) *status.FileFailure {
	f := &status.FileFailure{Since: p.bad, Meanwhile: s.meanwhile(p)}
	switch v := p.loads(); {
	case p.description.Problem != nil:
		f.Error = p.description.Problem.Error()
	case p.next != nil && p.next.reason != nil:
		f.Error, f.Since = p.next.reason.Error(), p.next.failedSince
	case v != nil && v.reason != nil:
		f.Error, f.Since = v.reason.Error(), v.failedSince
	default:
		return nil
	}
	why := plugin.Printable(f.Error, 1<<10)
	if last := p.last; last != nil && last.reason != nil && last.reason.Error() != f.Error {
		why += "; nor can its last good version be loaded: " + plugin.Printable(last.reason.Error(), 1<<10)
	}
	f.Error = why
	return f
}

// meanwhile says what runs while the files of a plugin cannot be loaded.
func (s *slots) meanwhile(p *slot) string {
	switch {
	case s.off[p.id] != nil:
		return "the plugin stays disabled"
	case s.bypassed:
		return "plugins are bypassed"
	case p.active != nil:
		return fmt.Sprintf("version %s of %s stays active", plugin.Printable(p.active.loaded.Manifest().Version, 1<<8), p.good.Since.UTC().Format(time.RFC3339))
	case p.refuses():
		return "its hooks are refused until its last good version is loaded"
	case p.last != nil && p.last.state != failed:
		return "its last good version is being loaded"
	}
	return "the plugin is not loaded"
}
