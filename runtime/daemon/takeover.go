package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/handover"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

const (
	// takeOverSyncTime is of Synchronize before a plugin is active, while calls wait.
	takeOverSyncTime = 300 * time.Millisecond
	// activeTime is how long plugins may take to become active. It is less than takeTime.
	activeTime = 8 * time.Second
	activePoll = 5 * time.Millisecond
	// connectTime is how long a container runtime that answers may take to accept a connection.
	connectTime = time.Second
)

// takingOver is what a process needs to take the place of another; nil if it does not.
type takingOver struct {
	from  *handover.Predecessor
	warm  []*loaded // plugins, whose code those have that are loaded with the state
	begun time.Time
	done  atomic.Bool   // this process serves
	ended chan struct{} // closed when the other process has ended, after this one serves
}

// takeOver does all that another process need not end for, and returns when this one has the state.
func (d *daemon) takeOver(ctx context.Context, from *handover.Predecessor) error {
	t := &takingOver{from: from, begun: time.Now(), ended: make(chan struct{})}
	d.taking = t
	if err := d.prepare(ctx, t); err != nil {
		return from.Fail(err)
	}
	for _, have := range t.warm {
		wasm.KeepCode(have.Plugin) // so that guest-memory suffices for those that are loaded again
	}
	if err := from.Prepared(); err != nil {
		return err
	}
	if err := d.ledger.Reload(ctx); err != nil {
		return from.Fail(err)
	}
	return nil
}

// notServing tells the other process, if there is one, why this one cannot take its place, and returns why this one does
// not serve.
func (d *daemon) notServing(err error) error {
	if d.taking != nil {
		return d.taking.from.Fail(err)
	}
	return &notStarted{err}
}

// prepare checks that this process can take the place of the other, and compiles its plugins.
func (d *daemon) prepare(ctx context.Context, t *takingOver) error {
	if own := config.Path(d.config.Listen); own != t.from.Listen {
		return fmt.Errorf("listen is %s, and the running process listens on %s: restart the service to change that", own, t.from.Listen)
	}
	if own := d.config.StateDir; own != t.from.StateDir {
		return fmt.Errorf("state-dir is %q, and that of the running process %q: restart the service to change that", own, t.from.StateDir)
	}
	quiet := *d.slots.loader // the plugins are loaded once more
	quiet.observer = observe.Discard()
	dirs := dirsOf(d.config)
	good := map[string]registry.Description{}
	if store, err := lastgood.Open(d.config.DataDir); err == nil { // serve reports the error, and what is ignored
		all, _ := store.All(dirs)
		good = descriptionsOf(all)
	}
	descriptions, problems := registry.ReadAfter(dirs, good)
	for _, id := range t.from.Plugins {
		described := func(d registry.Description) bool { return d.ID == id }
		if err := registry.Unread(problems); err != nil && !slices.ContainsFunc(descriptions, described) {
			return fmt.Errorf("plugin %s is active in the running process: %w", id, err)
		}
	}
	for _, description := range descriptions {
		if description.Disabled || description.IsHookServer() {
			continue // it is connected when it is loaded
		}
		err := description.Problem
		var have *loaded
		if err == nil {
			have, err = quiet.open(ctx, description, newPersistent(), false)
		}
		if last, known := good[description.ID]; err != nil && known && !last.IsHookServer() {
			have, err = quiet.open(ctx, last, newPersistent(), false)
		}
		if err == nil {
			t.warm = append(t.warm, have)
		} else if slices.Contains(t.from.Plugins, description.ID) {
			return fmt.Errorf("it is active in the running process: %w", err)
		}
	}
	d.awaitBackend(ctx)
	return nil
}

// awaitBackend waits for the connection to the container runtime, but not for long: calls that it
// cannot answer fail in both processes.
func (d *daemon) awaitBackend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	_ = proxy.Answers(ctx, d.config.Backend)
}

// inherit returns the socket for calls of the other process.
func (t *takingOver) inherit() (net.Listener, error) {
	if !t.from.Owned {
		return t.from.Listener(), nil
	}
	return proxy.Inherited(t.from.Listener(), t.from.Listen)
}

// begin returns when the plugins that were active in the other process are, and that process
// accepts no connection any more. Calls that end there later are then finished here.
func (d *daemon) begin(ctx, background context.Context) error {
	t := d.taking
	if t == nil {
		return nil
	}
	err := d.awaitActive(ctx)
	if list := d.files.Load(); !list.Complete && !d.slots.has(t.from.Plugins) {
		err = fmt.Errorf("the running process has active plugins: %w", errors.Join(list.Unread...))
	}
	if err != nil {
		return t.from.Fail(err)
	}
	t.done.Store(true)
	if err := t.from.Serving(); err != nil {
		return err
	}
	for _, have := range t.warm {
		have.release()
	}
	d.observer.Observe(ctx, &observe.TookOver{PID: t.from.PID, Took: time.Since(t.begun)})
	d.reportServing(ctx)
	go d.finishLeft(background)
	return nil
}

// awaitActive waits until the plugins are active that were in the other process, and no other one
// is being loaded. A plugin whose files are gone is not waited for.
func (d *daemon) awaitActive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, activeTime)
	defer cancel()
	for {
		missing, waits := d.slots.inactive(d.taking.from.Plugins)
		if !waits && len(missing) == 0 {
			return nil
		}
		select {
		case <-time.After(activePoll):
		case <-ctx.Done():
			if len(missing) == 0 {
				return nil // what the running process did without
			}
			return fmt.Errorf("plugins that are active in the running process did not become so within %v: %s", activeTime, strings.Join(missing, "; "))
		}
	}
}

// inactive returns those of these plugins whose files are there and that are not active, each with
// the reason, and whether any plugin is on its way to be.
func (s *slots) inactive(of []string) (missing []string, waits bool) {
	type answer struct {
		missing []string
		waits   bool
	}
	a, _ := ask(s, func() (a answer) {
		for _, p := range s.order {
			if s.bypassed || p.active != nil {
				continue
			}
			if slices.Contains(of, p.id) {
				a.missing = append(a.missing, p.id+": "+s.whyInactive(p.loads()))
			}
			a.waits = a.waits || p.loads() != nil && p.loads().state != failed
		}
		return a
	})
	return a.missing, a.waits
}

// has reports whether there are files, or were, of each of these plugins.
func (s *slots) has(ids []string) bool {
	all, _ := ask(s, func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return s.all[id] == nil })
	})
	return all
}

// whyInactive says why the version of a plugin that is to become active is not yet.
func (s *slots) whyInactive(v *version) string {
	switch {
	case v == nil:
		return "it is not loaded"
	case v.reason != nil:
		return v.reason.Error()
	case v.state == ready && s.store != filled:
		return "the container runtime has not told of its pods"
	default:
		return "it is " + v.state.String()
	}
}

// finishLeft finishes calls that end in the other process, until that has ended. If a third process
// has taken the place of this one meanwhile, they are left to that.
func (d *daemon) finishLeft(ctx context.Context) {
	defer close(d.taking.ended)
	for {
		l, ok := d.taking.from.Left()
		if !ok {
			return
		}
		left := intercept.Left{Method: l.Method, Request: cri.FrameOf(l.Request)}
		if !l.Failed {
			left.Answer = cri.FrameOf(l.Answer)
		}
		if d.gate.Return(ctx, left) {
			d.finish(ctx, left)
			d.gate.Leave()
		}
	}
}

// awaitLeft returns when the process that this one has replaced has ended, whose calls are left to a
// third one by way of this one. It does not wait if there is no such process, or no third one. The gate
// does not tell: it is handed over a moment after the server has ended.
func (d *daemon) awaitLeft(ctx context.Context) {
	if d.taking == nil || !d.handing.retires.Load() {
		return
	}
	select {
	case <-d.taking.ended:
	case <-time.After(retireTime):
	case <-ctx.Done():
	}
}

// finish does what follows the answer of one call. It returns before post hooks have run.
func (d *daemon) finish(ctx context.Context, l intercept.Left) {
	if g := d.current.acquire(); g != nil {
		defer g.release()
		intercept.Finish(ctx, g.options, l)
	}
}

// firstSync returns how long a plugin is synchronized with pods before it becomes active.
func (d *daemon) firstSync() time.Duration {
	if d.taking != nil && !d.taking.done.Load() {
		return takeOverSyncTime
	}
	return d.firstSyncTime
}
