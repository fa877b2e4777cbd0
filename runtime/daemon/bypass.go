package daemon

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// How soon a bypass counts. Together they are less than the second in which every call is to pass.
const (
	bypassPoll = 250 * time.Millisecond // between two looks at the file
	undoHold   = 600 * time.Millisecond // for which updates of containers wait until values are undone
)

// bypassReminder is how often the log says that the bypass lasts.
const bypassReminder = time.Hour

// bypassing is the state of the bypass.
type bypassing struct {
	mu       sync.Mutex                    // held while the file is looked at, and its state is carried out
	state    bypass.State                  // guarded by mu
	unknown  bool                          // the file could not be looked at, and an event has said so; guarded by mu
	reminded time.Time                     // guarded by mu
	cut      atomic.Pointer[intercept.Cut] // of the plugins since the last bypass
	undoing  undoing
}

// By what a bypass began or ended.
const (
	byFile    = "file"
	byCommand = "command"
)

// bypassAtStart begins with the bypass if it is on, before any plugin is loaded.
func (d *daemon) bypassAtStart(ctx context.Context) {
	if d.config.BypassFile != "" {
		d.lookForBypass(ctx, byFile)
		d.slots.bypass(ctx, d.current.bypassed.Load())
	}
}

// watchBypass looks at the bypass file until ctx is done.
func (d *daemon) watchBypass(ctx context.Context) {
	if d.config.BypassFile == "" {
		return
	}
	ticker := time.NewTicker(bypassPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.lookForBypass(ctx, byFile)
		case <-ctx.Done():
			return
		}
	}
}

// lookForBypass looks at the file, and carries out what it says.
func (d *daemon) lookForBypass(ctx context.Context, by string) {
	b := &d.bypass
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err := bypass.Read(d.config.BypassFile)
	if err != nil { // it stays as it is
		if !b.unknown {
			d.observer.Observe(ctx, &observe.BypassUnknown{On: d.current.bypassed.Load(), Err: err})
		}
		b.unknown = true
		return
	}
	b.unknown = false
	was := b.state
	b.state = now
	switch {
	case now.On && !was.On:
		b.reminded = time.Now()
		d.beginBypass()
		d.observer.Observe(ctx, &observe.BypassOn{By: by, File: d.config.BypassFile, Reason: now.Reason, Since: now.Since})
	case !now.On && was.On:
		d.endBypass()
		d.observer.Observe(ctx, &observe.BypassOff{By: by, File: d.config.BypassFile, Since: was.Since})
		d.followBypass()
	case now.On && time.Since(b.reminded) >= bypassReminder:
		b.reminded = time.Now()
		d.observer.Observe(ctx, &observe.BypassLasts{File: d.config.BypassFile, Reason: now.Reason, Since: now.Since})
	}
}

// beginBypass has every call pass from now on, and every hook that runs end. It depends on nothing
// that may wait: the slots follow.
func (d *daemon) beginBypass() {
	d.bypass.undoing.begin()
	d.current.bypassed.Store(true)
	d.bypass.cut.Load().Begin()
	d.followBypass()
}

// endBypass has calls get plugins again, as soon as there are any.
func (d *daemon) endBypass() {
	d.bypass.cut.Store(intercept.NewCut())
	d.current.bypassed.Store(false)
}

// followBypass has the slots do what the bypass of the moment wants. The order of several is
// all the same.
func (d *daemon) followBypass() {
	go d.slots.post(func(ctx context.Context) { d.slots.bypass(ctx, d.current.bypassed.Load()) })
}

// setBypass makes or removes the file, and returns what has come of it, if the time allows when
// the values of plugins are undone.
func (d *daemon) setBypass(ctx context.Context, on bool, reason string) (status.Bypass, error) {
	var err error
	if d.config.BypassFile == "" {
		return status.Bypass{}, admin.NotReady("the proxy has no bypass file: name one with the setting bypass-file")
	}
	if on {
		err = bypass.Make(d.config.BypassFile, plugin.Printable(reason, len(reason)))
	} else {
		err = bypass.Remove(d.config.BypassFile)
	}
	if err != nil {
		return status.Bypass{}, err
	}
	d.lookForBypass(ctx, byCommand)
	_, cancel := d.bypass.undoing.wait(ctx)
	cancel()
	return d.bypassStatus(), nil
}

func (d *daemon) bypassStatus() status.Bypass {
	b := &d.bypass
	b.mu.Lock()
	defer b.mu.Unlock()
	return status.Bypass{
		On:     b.state.On,
		File:   d.config.BypassFile,
		Since:  b.state.Since,
		Reason: b.state.Reason,
		Undone: b.state.On && d.ledger.Empty(),
	}
}

// undoing is the time in which values of plugins are being undone, and no plugin is there any
// more. The zero value is ready.
type undoing struct {
	now atomic.Pointer[undo]
}

// undo is one such time.
type undo struct {
	until time.Time
	done  chan struct{}
	end   func() // closes done
}

// begin begins the time, if it has not begun, or nothing waits for it any more: a bypass that is
// soon over may have begun it, and undone nothing.
func (u *undoing) begin() {
	now := u.now.Load()
	if now != nil && time.Now().Before(now.until) {
		return
	}
	done := make(chan struct{})
	u.now.CompareAndSwap(now, &undo{until: time.Now().Add(undoHold), done: done, end: sync.OnceFunc(func() { close(done) })})
}

// end ends the time, if it has begun.
func (u *undoing) end() {
	if now := u.now.Swap(nil); now != nil {
		now.end()
	}
}

// wait returns when the time is over, or a part of it that calls may wait for, or ctx. hold ends
// then at the latest.
func (u *undoing) wait(ctx context.Context) (hold context.Context, cancel context.CancelFunc) {
	now := u.now.Load()
	if now == nil {
		return context.WithDeadline(ctx, time.Time{})
	}
	hold, cancel = context.WithDeadline(ctx, now.until)
	select {
	case <-now.done:
	case <-hold.Done():
	}
	return hold, cancel
}

// passUpdate passes an update of a container that comes while there is no plugin. The kernel may
// refuse it until the values of plugins are undone, for which it waits, but not for long.
func (d *daemon) passUpdate(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
	if d.ledger.Empty() {
		return next(ctx, call.Request)
	}
	hold, cancel := d.bypass.undoing.wait(ctx)
	defer cancel()
	return intercept.PassUpdate(ctx, hold, d.enforcer(), call.Request, next)
}
