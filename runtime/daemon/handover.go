package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/handover"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// How long the steps of a handover may take. They are less than admin.ReloadTime together. Calls
// with hooks wait during an attempt of quietTime, the last of which takes 8 s, and takeTime.
const (
	prepareTime = 75 * time.Second // to read settings, and to load plugins
	quietTime   = 20 * time.Second // for calls with hooks that are in flight, in several attempts
	firstQuiet  = 2 * time.Second  // of the first attempt; each further one takes twice as long
	openTime    = time.Second      // between two attempts, in which calls with hooks pass
	takeTime    = 10 * time.Second // to read the state and the pods, and to make plugins active
)

// retireTime is how long calls in flight may take in the process whose place another has taken.
// Pulls of images take longest.
const retireTime = time.Hour

// Why there is no handover, or one is given up.
var (
	errReloading = errors.New("another reload is under way")
	errEnding    = errors.New("this process is about to end")
	errBypassed  = errors.New("a bypass of the plugins began meanwhile: try again")
)

// handingOver is what a process needs to have another take its place.
type handingOver struct {
	mu       sync.Mutex // held during a handover
	program  string     // path of the program
	noPath   error      // why that is not known
	listener net.Listener
	stop     context.CancelFunc                      // ends what the daemon does beside calls
	retires  atomic.Bool                             // another process serves
	cancel   atomic.Pointer[context.CancelCauseFunc] // gives up the handover that is under way, or was the last; nil: there was none
}

// reload has another process, of the program that is at this one's path now, take the place of
// this one, and returns its PID. After an error this one serves as before, unless the event is
// SuccessorGone.
func (d *daemon) reload() (pid int, err error) {
	h := &d.handing
	if !h.mu.TryLock() {
		return 0, errReloading
	}
	defer h.mu.Unlock()
	ctx, start := context.Background(), time.Now() // it goes on if the caller leaves
	gone := false
	if pid, gone, err = d.handOver(); gone {
		d.observer.Observe(ctx, &observe.SuccessorGone{PID: pid, Err: err})
	} else if err != nil {
		d.observer.Observe(ctx, &observe.HandoverFailed{Err: err})
	}
	if err != nil {
		return 0, err
	}
	d.observer.Observe(ctx, &observe.HandedOver{PID: pid, Took: time.Since(start)})
	return pid, nil
}

// handOver is reload without its events. gone says that this process accepts no connections any more,
// and that the other one probably does not either.
func (d *daemon) handOver() (pid int, gone bool, err error) {
	h := &d.handing
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	h.cancel.Store(&cancel)
	go func() {
		select {
		case <-d.stopping:
			cancel(errEnding)
		case <-ctx.Done():
		}
	}()
	switch {
	case d.config.Mode == config.ModeDocker:
		return 0, false, errors.New("a proxy with mode docker cannot be reloaded: restart the service")
	case h.noPath != nil:
		return 0, false, fmt.Errorf("finding this program: %w", h.noPath)
	case d.isStopping() || d.gate.HandedOver():
		return 0, false, errEnding
	}
	own := handover.Process{
		PID: os.Getpid(), Listen: config.Path(d.config.Listen), Owned: proxy.Owns(h.listener), StateDir: d.config.StateDir, Plugins: d.active(),
	}
	s, err := handover.Start(h.program, h.listener.(syscall.Conn), own)
	if err != nil {
		return 0, false, err
	}
	if err := d.give(ctx, s); err != nil {
		return 0, false, err
	}
	if err := d.retire(context.WithoutCancel(ctx), s); err != nil {
		return s.PID, true, fmt.Errorf("process %d probably ended right after it took over, and this one takes no new calls: see the log, and restart the service if the service manager does not: %w", s.PID, err)
	}
	return s.PID, false, nil
}

// give gives the state to the other process, and returns when that serves. After an error, or ctx's
// end, that process is gone, and this one has the state.
func (d *daemon) give(ctx context.Context, s *handover.Successor) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err = s.AwaitPrepared(ctx, prepareTime); err != nil {
		s.Kill()
		return err
	}
	d.lastGood.release(ctx) // before calls wait: a disk may be slow
	defer func() {
		if err != nil {
			d.lastGood.resume()
		}
	}()
	if err = d.closeGate(ctx); err != nil {
		s.Kill()
		return err
	}
	if err = d.releaseState(ctx); err != nil {
		s.Kill()
		return err
	}
	if err = s.Give(ctx, takeTime); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.Kill()
		return errors.Join(err, d.resumeState(context.WithoutCancel(ctx)))
	}
	return nil
}

// closeGate closes the gate. A call that takes long keeps others from passing for a part of the time
// only.
func (d *daemon) closeGate(ctx context.Context) error {
	within, start := firstQuiet, time.Now()
	for {
		quiet, cancel := context.WithTimeout(ctx, within)
		err := d.gate.Close(quiet, d.queue)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if within *= 2; time.Since(start)+openTime+within > quietTime {
			return fmt.Errorf("calls with hooks, or changes by plugins, did not end in several attempts within %v: try again", quietTime)
		}
		select {
		case <-time.After(openTime):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *daemon) isStopping() bool {
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}

// active returns the ids of the plugins that are active.
func (d *daemon) active() (ids []string) {
	ids, _ = ask(d.slots, func() (ids []string) {
		for _, p := range d.slots.order {
			if p.active != nil {
				ids = append(ids, p.id)
			}
		}
		return ids
	})
	return ids
}

// releaseState saves the state, has nothing of this process change files that the other one reads,
// and closes the sockets that it makes. The gate is closed. If something could not be saved, this
// process goes on instead.
func (d *daemon) releaseState(ctx context.Context) error {
	err := d.durable.release(ctx)
	if err == nil {
		if err = d.ledger.Release(); err != nil {
			d.durable.resume()
		}
	}
	if err != nil {
		d.gate.Open()
		return err
	}
	d.sockets.pause()
	return nil
}

// resumeState takes back what releaseState has left. The other process is gone. It may have
// changed the state, but has served no call.
func (d *daemon) resumeState(ctx context.Context) error {
	err := d.ledger.Reload(ctx)
	d.durable.resume()
	d.sockets.resume()
	d.gate.Open()
	return err
}

// retire leaves everything to the other process but the calls in flight. An error says that the
// other process does not take it.
func (d *daemon) retire(ctx context.Context, s *handover.Successor) error {
	d.notifier.Replaced(s.PID)
	proxy.Disown(d.handing.listener)
	d.handing.retires.Store(true)
	d.server.(*proxy.Server).Retire() // which serves CRI
	conn, err := d.dial(d.config.Listen)
	if err == nil {
		d.successor.Store(conn)
	}
	err = errors.Join(err, d.leaveTo(ctx, s))
	d.handing.stop()
	return err
}

// heir is the other process, to which calls are left.
type heir interface {
	Release() error
	Leave(handover.Left) error
}

// leaveTo leaves the calls that end from now on to the other process. That process waits for the
// release first.
func (d *daemon) leaveTo(ctx context.Context, s heir) error {
	err := s.Release()
	d.gate.HandOver(func(l intercept.Left) { d.leave(ctx, s, l) })
	return err
}

// leave has the other process do what follows the answer of a call that has ended late.
func (d *daemon) leave(ctx context.Context, s heir, l intercept.Left) {
	left := handover.Left{Method: l.Method, Request: l.Request.Bytes(), Failed: l.Answer == nil}
	if l.Answer != nil {
		left.Answer = l.Answer.Bytes()
	}
	if err := s.Leave(left); err != nil {
		d.observer.Observe(ctx, &observe.CallNotLeft{Method: l.Method, Err: err})
	}
}
