package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/handover"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// How long the steps of a handover may take. They are less than admin.ReloadTime together. Calls
// with hooks wait during the last two.
const (
	prepareTime = 75 * time.Second // to read settings, and to load plugins
	quietTime   = 20 * time.Second // for calls with hooks that are in flight
	takeTime    = 10 * time.Second // to read the state and the pods, and to make plugins active
)

// retireTime is how long calls in flight may take in the process whose place another has taken.
// Pulls of images take longest.
const retireTime = time.Hour

// errReloading refuses a second handover.
var errReloading = errors.New("another reload is under way")

// handingOver is what a process needs to have another take its place.
type handingOver struct {
	mu       sync.Mutex // held during a handover
	program  string     // path of the program
	noPath   error      // why that is not known
	listener net.Listener
	stop     context.CancelFunc // ends what the daemon does beside calls
}

// reload has another process, of the program that is at this one's path now, take the place of
// this one, and returns its PID. After an error this one serves as before.
func (d *daemon) reload() (pid int, err error) {
	h := &d.handing
	if !h.mu.TryLock() {
		return 0, errReloading
	}
	defer h.mu.Unlock()
	ctx, start := context.Background(), time.Now() // it goes on if the caller leaves
	if pid, err = d.handOver(ctx); err != nil {
		d.observer.Observe(ctx, &observe.HandoverFailed{Err: err})
		return 0, err
	}
	d.observer.Observe(ctx, &observe.HandedOver{PID: pid, Took: time.Since(start)})
	return pid, nil
}

func (d *daemon) handOver(ctx context.Context) (pid int, err error) {
	h := &d.handing
	switch {
	case d.config.Mode == config.ModeDocker:
		return 0, errors.New("a proxy with mode docker cannot be reloaded: restart the service")
	case h.noPath != nil:
		return 0, fmt.Errorf("finding this program: %w", h.noPath)
	case d.isStopping() || d.gate.HandedOver():
		return 0, errors.New("this process is about to end")
	}
	own := handover.Process{
		PID: os.Getpid(), Listen: config.Path(d.config.Listen), Owned: proxy.Owns(h.listener), StateDir: d.config.StateDir, Plugins: d.active(),
	}
	s, err := handover.Start(h.program, h.listener.(syscall.Conn), own)
	if err != nil {
		return 0, err
	}
	if err := s.AwaitPrepared(prepareTime); err != nil {
		s.Kill()
		return 0, err
	}
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	if err := d.gate.Close(quiet, d.queue); err != nil {
		s.Kill()
		return 0, fmt.Errorf("calls with hooks, or changes by plugins, did not end within %v: try again", quietTime)
	}
	d.releaseState(ctx)
	if err := s.Give(takeTime); err != nil {
		s.Kill()
		return 0, errors.Join(err, d.resumeState(ctx))
	}
	d.retire(ctx, s)
	return s.PID, nil
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

// releaseState has nothing of this process change files that the other one reads, and closes the
// sockets that it makes. The gate is closed.
func (d *daemon) releaseState(ctx context.Context) {
	d.sockets.pause()
	d.durable.release(ctx)
	d.ledger.Release()
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

// retire leaves everything to the other process but the calls in flight.
func (d *daemon) retire(ctx context.Context, s *handover.Successor) {
	d.notifier.Replaced(s.PID)
	proxy.Disown(d.handing.listener)
	d.server.(*proxy.Server).Retire() // which serves CRI
	conn, err := d.dial(d.config.Listen)
	if err == nil {
		d.successor.Store(conn)
	}
	d.gate.HandOver(func(l intercept.Left) { d.leave(ctx, s, l) })
	if err = errors.Join(err, s.Release()); err != nil {
		d.observer.Observe(ctx, &observe.HandoverFailed{Err: err})
	}
	d.handing.stop()
}

// leave has the other process do what follows the answer of a call that has ended late.
func (d *daemon) leave(ctx context.Context, s *handover.Successor, l intercept.Left) {
	left := handover.Left{Method: l.Method, Request: l.Request.Bytes(), Failed: l.Answer == nil}
	if l.Answer != nil {
		left.Answer = l.Answer.Bytes()
	}
	d.leaving.Lock()
	defer d.leaving.Unlock()
	if err := s.Leave(left); err != nil {
		d.observer.Observe(ctx, &observe.CallNotLeft{Method: l.Method, Err: err})
	}
}
