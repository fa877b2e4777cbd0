package host

import (
	"context"
	"errors"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// undoTime is how long uninstalling waits for plugins' values to be undone. Those that are
// left then are of containers whose files the kernel or the runtime does not let change.
const undoTime = 30 * time.Second

// reason is the text of the bypass file while the proxy is uninstalled.
const reason = "wasmproxy host uninstall"

// undo takes all plugins out of the way, and waits until their values are undone: nobody
// could undo them later. A proxy that does not run cannot, and is no reason to stop.
func (p *removal) undo(ctx context.Context) error {
	h, c := p.host, p.settings
	if c.AdminSocket == "" {
		h.say("admin-socket is empty, so the values that plugins have set stay")
		return nil
	}
	if err := h.begin("bypass"); err != nil {
		return err
	}
	client := admin.Client{Socket: config.Path(c.AdminSocket)}
	now, err := client.Bypass(ctx)
	p.bypass = now.File
	switch {
	case err != nil, now.On:
	case now.File == "":
		err = errors.New("the proxy has no bypass file")
	default:
		err = bypass.Make(h.Root.Under(now.File), reason)
	}
	for end := time.Now().Add(undoTime); err == nil && !now.Undone; now, err = client.Bypass(ctx) {
		if time.Now().After(end) {
			h.say("some values that plugins have set are not undone, and stay: wasmproxy explain POD shows them")
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	switch {
	case errors.Is(err, admin.ErrNoProxy):
		h.say("no proxy runs, so the values that plugins have set stay")
	case err != nil:
		h.say("the values that plugins have set may stay: %v", err)
	default:
		h.say("the values that plugins have set are undone")
	}
	return nil
}

// endBypass removes the file that undo has made. One of the operator's stays.
func (r Root) endBypass(file string) error {
	own, err := r.ownBypass(file)
	if err != nil || !own {
		return err
	}
	return r.remove(file)
}

// ownBypass reports whether undo has made the file, and not the operator.
func (r Root) ownBypass(file string) (bool, error) {
	if file == "" {
		return false, nil
	}
	s, err := bypass.Read(r.Under(file))
	return s.Reason == reason, err
}
