package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
)

// goodPoll is how often the container runtime is asked until it has answered once.
const goodPoll = time.Second

// saveAgain is how long after a failed save the next one is tried.
const saveAgain = 10 * time.Second

// reportLastGood makes an event of a start with the last good settings.
func reportLastGood(ctx context.Context, source *settings.Source, observer observe.Observer) {
	if s := source.State(); s.LastGood {
		observer.Observe(ctx, &observe.SettingsRefused{File: s.File, Since: s.Since, Err: source.Refused()})
	}
}

// keepSettings saves the active settings as good once the container runtime has answered: without an answer their
// backend may be wrong. It tries again what fails.
func (d *daemon) keepSettings(ctx context.Context) {
	if d.settings == nil {
		return
	}
	wait := goodPoll
	for {
		if _, err := d.reconciler.Backend.Version(ctx); err == nil {
			if err = d.settings.Keep(); err == nil {
				d.unkept.Store(false)
				return
			}
			if wait = saveAgain; !d.unkept.Swap(true) {
				d.observer.Observe(ctx, &observe.SettingsNotSaved{Err: err})
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}
