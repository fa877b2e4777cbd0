// Package reconcile brings what the proxy knows and wants in line with the container runtime: the store of pods, and the values
// that plugins want in cgroup files and CRI fields. It does so when the runtime comes back, after calls without an answer, when
// systemd has reloaded, and from time to time. It decides when that is done; what is done is for packages pods and enforce.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/backend"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Reconciler has the store and the values, and what they are reconciled with. It is safe for concurrent use, but for Connect.
type Reconciler struct {
	Store   *pods.Store
	Cgroups *cgroup.FS      // nil without a cgroup root
	Ledger  *enforce.Ledger // of the values that plugins want
	Queue   *workqueue.Queue
	Backend *backend.Backend // nil before Connect
	Images  *pods.Images     // of the runtime's image service; nil: there is none

	// Following is true while the store follows calls: there is a plugin.
	Following atomic.Bool
	// Present has each plugin whose files are there, loaded or not, by id, as it may want values. nil until these are known.
	Present atomic.Pointer[map[string]*intercept.Generation]
	// Cut ends calls of plugins, and what is done for plugins, since the last bypass. It is never nil.
	Cut atomic.Pointer[intercept.Cut]

	// Resync has the store filled again: its receiver calls Refill.
	Resync workqueue.Trigger
	// Sync has plugins synchronized with pods that they do not know. It is notified after the store was filled.
	Sync workqueue.Trigger

	observer  observe.Observer
	systemd   *systemd.Manager
	timing    Timing
	lost      workqueue.Trigger // the runtime may have done what it did not answer
	reloaded  workqueue.Trigger // systemd has reloaded
	exclusive chan struct{}     // holds a token while the store is filled, or values are undone
}

// Timing is when a Reconciler works without another cause.
type Timing struct {
	StartFills []time.Duration // after the start: then the store is filled again
	ScanPeriod time.Duration   // between two looks at a part of the cgroup files
}

// DefaultTiming returns the times of a node.
func DefaultTiming() Timing { return Timing{StartFills: lostDelays, ScanPeriod: scanPeriod} }

// Open opens cgroups, and the values that an earlier process has left. The caller closes the Reconciler.
func Open(ctx context.Context, c *config.Config, timing Timing, observer observe.Observer) (*Reconciler, error) {
	r := &Reconciler{
		Queue: workqueue.New(), Resync: workqueue.NewTrigger(), Sync: workqueue.NewTrigger(), observer: observer, timing: timing,
		lost: workqueue.NewTrigger(), reloaded: workqueue.NewTrigger(), exclusive: make(chan struct{}, 1),
	}
	r.Cut.Store(intercept.NewCut())
	var err error
	if c.CgroupRoot != "" {
		if r.Cgroups, err = cgroup.Open(c.CgroupRoot, c.CgroupMode); err != nil {
			return nil, err
		}
	}
	background := context.Background() // no call causes what systemd's connection reports
	r.systemd = systemd.New(r.Cgroups.Version(), systemd.Addresses(), systemd.Events{
		Connected:   func(version int) { observer.Observe(background, &observe.SystemdConnected{Version: version}) },
		Unavailable: func(err error) { observer.Observe(background, &observe.SystemdUnavailable{Err: err}) },
		Refused: func(unit, property string, err error) {
			observer.Observe(background, &observe.SystemdPropertyRefused{Unit: unit, Property: property, Err: err})
		},
		Reloaded: func() { // after which the files are repaired that systemd has overwritten
			observer.Observe(background, &observe.SystemdReloaded{})
			r.reloaded.Notify()
		},
	})
	if r.Cgroups != nil {
		r.Cgroups.UseSystemd(r.systemd)
	}
	r.Store = pods.NewStoreWith(enforce.KernelOf(r.Cgroups))
	if r.Ledger, err = openLedger(ctx, c, observer); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func openLedger(ctx context.Context, c *config.Config, observer observe.Observer) (*enforce.Ledger, error) {
	if c.StateDir == "" {
		return enforce.NewLedger(), nil
	}
	// Records have values written to cgroups. The directory is looked at before its mode is corrected, and the way to it also
	// when it is new: otherwise the next start would fail.
	err := registry.CheckTrust(c.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(c.StateDir), 0o755); err == nil {
			err = os.MkdirAll(c.StateDir, 0o700)
		}
		if err == nil {
			err = registry.CheckTrust(c.StateDir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("state-dir: %w: give it to the proxy's user with mode 0700, or name another directory", err)
	}
	l, err := enforce.OpenLedger(ctx, c.StateDir, observer)
	if err != nil {
		return nil, fmt.Errorf("state-dir %s: %w", c.StateDir, err)
	}
	return l, nil
}

// Connect sets the container runtime.
func (r *Reconciler) Connect(conn backend.Connection, client backend.Client) {
	r.Backend = backend.New(conn, client, r.Store, r.Cgroups, r.Resync, r.observer)
}

// Close releases cgroups and values. No call is in flight.
func (r *Reconciler) Close() (err error) {
	if r.Cgroups != nil {
		err = r.Cgroups.Close()
	}
	if r.Ledger != nil {
		err = errors.Join(err, r.Ledger.Close())
	}
	return err
}

// Enforcer returns what has the values of plugins hold.
func (r *Reconciler) Enforcer() *enforce.Enforcer {
	return &enforce.Enforcer{
		Observer: r.observer, Store: r.Store, Backend: r.Backend.Client, Ledger: r.Ledger, Cgroups: r.Cgroups, Node: &r.Backend.Node, Queue: r.Queue,
	}
}

// EnforcerOfRuntime is an Enforcer with the pods that the runtime has now, for values that are left while the store follows
// none. [backend.Complete] says what the error means.
func (r *Reconciler) EnforcerOfRuntime(ctx context.Context) (*enforce.Enforcer, error) {
	left := r.Enforcer()
	left.Store = pods.NewStoreWith(enforce.KernelOf(r.Cgroups))
	return left, r.Backend.Read(ctx, left.Store)
}

// Run has the store and the values reconciled until ctx is done, but for what Resync asks for.
func (r *Reconciler) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { r.Backend.Watch(ctx, r.Refill) })
	tasks.Go(func() { r.followLost(ctx) })
	tasks.Go(func() { r.scanFiles(ctx) })
	if r.Cgroups != nil {
		tasks.Go(func() { r.systemd.Run(ctx) })
	}
	tasks.Wait()
}
