package daemon

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// notReady returns the reasons for which calls do not get what they are to get: the container
// runtime does not answer, its pods are not known, or a plugin that must not be ignored is not
// active. With why come the errors of plugins, whose text may be a guest's.
func (d *daemon) notReady(ctx context.Context, why bool) (reasons []string) {
	if _, err := d.reconciler.Backend.Version(ctx); err != nil {
		reasons = append(reasons, "the container runtime does not answer: "+plugin.Printable(err.Error(), 1<<10))
	}
	return append(reasons, d.unready(ctx, why, true)...)
}

// unready is notReady without the container runtime's answer. It does not wait for the runtime. Without files, bad
// files of settings and plugins are not among the reasons.
func (d *daemon) unready(ctx context.Context, why, files bool) (reasons []string) {
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
		switch s := d.settings.State(); {
		case s.Err == nil:
		case why:
			reasons = append(reasons, plugin.Printable(s.Problem(), 1<<11))
		default:
			reasons = append(reasons, "the settings file cannot be used; "+s.Meanwhile())
		}
	}
	return append(reasons, d.slots.Missing(ctx, why, files)...)
}

// selfCheck succeeds if the owner of the slots and the listener answer. It makes no call of
// CRI and asks no plugin.
func (d *daemon) selfCheck(ctx context.Context) error {
	if err := d.slots.Answer(ctx); err != nil {
		return err
	}
	return d.answers(ctx, d.config.Listen)
}
