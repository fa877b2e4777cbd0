package slots

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// How soon a bypass counts. Together they are less than the second in which every call is to pass.
const (
	bypassPoll = 250 * time.Millisecond // between two looks at the file
	undoHold   = 600 * time.Millisecond // for which updates of containers wait until values are undone
)

// bypassReminder is how often the log says that the bypass lasts.
const bypassReminder = time.Hour

// Bypass follows the bypass file. Calls depend on the cut and the generation alone, which no defect can hold; the slots follow.
// It is safe for concurrent use.
type Bypass struct {
	file    string // "": there is no bypass
	slots   *Slots
	undoing undoing
	state   atomic.Pointer[bypass.State] // never nil

	// Of who looks at the file: the start, and then watch.
	unknown  bool // the file could not be looked at, and an event has said so
	reminded time.Time
}

// watch looks at the file until ctx is done, and tells the slots.
func (b *Bypass) watch(ctx context.Context) {
	if b.file == "" {
		return
	}
	post := func(_ context.Context, on bool) {
		b.slots.post(func(ctx context.Context) { b.slots.bypass(ctx, on) })
	}
	ticker := time.NewTicker(bypassPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.look(ctx, post)
		case <-ctx.Done():
			return
		}
	}
}

// look looks at the file, and carries out what it says: first for calls, and then for the slots, which learn of each change.
func (b *Bypass) look(ctx context.Context, tell func(context.Context, bool)) {
	was := b.state.Load()
	now, err := bypass.Read(b.file)
	if err != nil { // it stays as it is
		if !b.unknown {
			b.slots.observer.Observe(ctx, &observe.BypassUnknown{On: was.On, Err: err})
		}
		b.unknown = true
		return
	}
	b.unknown = false
	begins, ends := now.On && !was.On, !now.On && was.On
	if begins {
		b.undoing.begin()
		b.slots.reconciler.Cut.Load().Begin()
		b.slots.generations.swap(nil)
	}
	if ends {
		b.slots.reconciler.Cut.Store(intercept.NewCut())
	}
	b.state.Store(&now) // whoever asks is told what counts for calls
	switch {
	case begins:
		b.reminded = time.Now()
		b.slots.observer.Observe(ctx, &observe.BypassOn{File: b.file, Reason: now.Reason, Since: now.Since})
		tell(ctx, true)
	case ends:
		b.slots.observer.Observe(ctx, &observe.BypassOff{File: b.file, Since: was.Since})
		tell(ctx, false)
	case now.On && time.Since(b.reminded) >= bypassReminder:
		b.reminded = time.Now()
		b.slots.observer.Observe(ctx, &observe.BypassLasts{File: b.file, Reason: now.Reason, Since: now.Since})
	}
}

// Status returns whether plugins are bypassed, and why.
func (b *Bypass) Status() status.Bypass {
	s := b.state.Load()
	return status.Bypass{On: s.On, File: b.file, Since: s.Since, Reason: s.Reason, Undone: s.On && b.slots.reconciler.Ledger.Empty()}
}

// undoing is the time in which values of plugins are being undone, and no plugin is there any
// more. The zero value is ready.
type undoing struct {
	mu    sync.Mutex
	until time.Time
	done  chan struct{} // closed when it ends; nil unless it has begun
}

// begin begins the time, if it has not begun, or nothing waits for it any more: a bypass that is
// soon over may have begun it, and undone nothing.
func (u *undoing) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil || !time.Now().Before(u.until) {
		u.until, u.done = time.Now().Add(undoHold), make(chan struct{})
	}
}

// end ends the time, if it has begun.
func (u *undoing) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done != nil {
		close(u.done)
		u.done = nil
	}
}

// wait returns when the time is over, or a part of it that calls may wait for, or ctx. hold ends
// then at the latest.
func (u *undoing) wait(ctx context.Context) (hold context.Context, cancel context.CancelFunc) {
	u.mu.Lock()
	until, done := u.until, u.done
	u.mu.Unlock()
	if done == nil {
		return context.WithDeadline(ctx, time.Time{})
	}
	hold, cancel = context.WithDeadline(ctx, until)
	select {
	case <-done:
	case <-hold.Done():
	}
	return hold, cancel
}

// passUpdate passes an update of a container that comes while there is no plugin. The kernel may
// refuse it until the values of plugins are undone, for which it waits, but not for long.
func (b *Bypass) passUpdate(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
	if b.slots.reconciler.Ledger.Empty() {
		return next(ctx, call.Request)
	}
	hold, cancel := b.undoing.wait(ctx)
	defer cancel()
	return intercept.PassUpdate(ctx, hold, b.slots.reconciler.Enforcer(), call.Request, next)
}
