// Package backend is the proxy's own connection to the container runtime: it keeps the connection up, fills the store of pods when
// the runtime comes back, and asks what the runtime and the node are. The calls of kubelet do not pass here: see package proxy.
package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Filling the store.
const (
	fillTime  = 2 * time.Minute // how long it may take
	retryTime = 5 * time.Second // until it is tried again
	// maxUnreadTime is the longest until it is tried again for objects that the runtime cannot
	// describe. The first is retryTime, and each twice the one before.
	maxUnreadTime = 10 * time.Minute
)

// Backend is the container runtime, as the proxy itself uses it. It is safe for concurrent use, but for Watch and Fill,
// which are not called at the same time as themselves.
type Backend struct {
	Client Client
	Node   atomic.Pointer[crifield.Node] // never nil; replaced when the runtime is another

	conn     Connection
	store    *pods.Store
	observer observe.Observer

	life   atomic.Uint64 // counts how often the connection was lost, from 1
	filled atomic.Uint64 // the life in which the store was filled last

	failures repeats // of filling the store
	unread   unread

	asking     singleflight.Group              // for the version
	describing sync.Mutex                      // held while Node and handlers are made
	handlers   atomic.Pointer[runtimeHandlers] // never nil; replaced when the runtime is another
}

// unread has the store filled again until the runtime describes what it lists. Only the goroutine that fills the store
// uses it.
type unread struct {
	again workqueue.Trigger // nil: it is not filled again
	count int               // of pods and containers
	after time.Duration
	timer *time.Timer
}

// begin waits for the next time, which is later each time, but soon if there are more of them than
// before. A fill for another cause before then begins the same wait anew.
func (u *unread) begin(count int) {
	early := u.timer != nil && u.timer.Stop()
	switch {
	case count > u.count:
		u.after = retryTime
	case !early:
		u.after = min(2*u.after, maxUnreadTime)
	}
	u.count = count
	if u.again != nil {
		u.timer = time.AfterFunc(u.after, u.again.Notify)
	}
}

func (u *unread) end() {
	if u.timer != nil {
		u.timer.Stop()
	}
	u.count = 0
}

// Client is what the proxy asks of the container runtime on its own behalf. Every
// [runtimeapi.RuntimeServiceClient] is one.
type Client interface {
	enforce.Backend
	Version(context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption) (*runtimeapi.VersionResponse, error)
	RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest, ...grpc.CallOption) (*runtimeapi.RuntimeConfigResponse, error)
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// Connection is what a Backend has to know of a *grpc.ClientConn.
type Connection interface {
	Target() string
	Connect()
	GetState() connectivity.State
	WaitForStateChange(context.Context, connectivity.State) bool
}

// New returns a Backend that fills store. again is notified when objects are to be read again that the runtime could not
// describe. cgroups may be nil.
func New(
	conn Connection, client Client, store *pods.Store, cgroups *cgroup.FS, again workqueue.Trigger, observer observe.Observer,
) *Backend {
	b := &Backend{Client: client, conn: conn, store: store, unread: unread{again: again}, observer: observer}
	b.life.Store(1)
	node := &crifield.Node{CgroupVersion: cgroups.Version()}
	machine(node) // a pod's limit may be lifted to the node's memory before the runtime is asked
	b.Node.Store(node)
	b.handlers.Store(&runtimeHandlers{})
	return b
}

// Watch calls behind while the connection is up and the store was not filled
// since it last came up, until ctx is done. It keeps the connection up.
func (b *Backend) Watch(ctx context.Context, behind func(context.Context)) {
	l := link{observer: b.observer, target: b.conn.Target()}
	var refill time.Time // not before then
	for ctx.Err() == nil {
		state, left := b.conn.GetState(), make(chan struct{})
		go func() { // also while behind runs: states may pass in that time
			defer close(left)
			b.conn.WaitForStateChange(ctx, state)
		}()
		switch state {
		case connectivity.Ready:
			refill = b.keepFilled(ctx, &l, refill, behind, left)
		case connectivity.TransientFailure:
			if !l.downReported {
				l.downReported = true
				b.observer.Observe(ctx, &observe.BackendLost{Backend: l.target})
			}
		case connectivity.Idle:
			b.conn.Connect()
		}
		<-left
		if state == connectivity.Ready && ctx.Err() == nil {
			b.life.Add(1) // lost, even if it is up again by now: states pass faster than they are looked at
			if l.lost(ctx); !l.unsteady() {
				refill = time.Time{}
			}
		}
	}
}

// keepFilled does for Watch what is due while the connection is up, until it has left that state. behind is not called before
// refill; the result is the refill of the next time.
func (b *Backend) keepFilled(ctx context.Context, l *link, refill time.Time, behind func(context.Context), left <-chan struct{}) time.Time {
	for {
		again := l.up(ctx) // when to look though the state is the same; zero: never
		if b.Behind() && !time.Now().Before(refill) {
			behind(ctx)
			if b.Behind() || l.unsteady() {
				refill = time.Now().Add(retryTime)
			}
		}
		if b.Behind() && (again.IsZero() || refill.Before(again)) {
			again = refill
		}
		var due <-chan time.Time
		if !again.IsZero() {
			due = time.After(time.Until(again))
		}
		select {
		case <-due:
		case <-left:
			return refill
		}
	}
}

// Behind reports whether the store was not filled in this life of the connection.
func (b *Backend) Behind() bool { return b.filled.Load() != b.life.Load() }

// Disconnects returns how often the connection was lost.
func (b *Backend) Disconnects() uint64 { return b.life.Load() - 1 }

// Connected reports whether the connection is up.
func (b *Backend) Connected() bool { return b.conn.GetState() == connectivity.Ready }

// Reachable reports whether the connection is up, or nobody has called yet.
func (b *Backend) Reachable() bool { return b.Connected() || b.conn.GetState() == connectivity.Idle }

// Complete reports whether a store has all pods and containers after a Sync with this error, though
// perhaps some by the list alone.
func Complete(err error) bool { return err == nil || errors.As(err, new(*pods.UnreadError)) }

// Fill makes the store hold what the backend has. Objects that the backend cannot describe are known by its lists. If the
// backend cannot be asked, the store stays as it is: hooks then read one object at a time, and Watch tries again.
func (b *Backend) Fill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	life, start := b.life.Load(), time.Now()
	err := b.store.Sync(ctx, b.Client)
	if !Complete(err) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return // the caller has ended
		}
		if n := b.failures.add(); n > 0 {
			b.observer.Observe(ctx, &observe.StoreNotFilled{Failures: n, Err: err})
		}
		return
	}
	b.failures.reset()
	b.filled.Store(life)
	if unread := (*pods.UnreadError)(nil); errors.As(err, &unread) {
		b.unread.begin(unread.Count)
		b.observer.Observe(ctx, &observe.ObjectsUnread{Again: b.unread.after, Err: err})
		return
	}
	b.unread.end()
	pods, containers := b.store.Len()
	b.observer.Observe(ctx, &observe.StoreFilled{Pods: pods, Containers: containers, Took: time.Since(start)})
}

// Read fills a store of the caller with what the runtime has now. [Complete] says what its error means.
func (b *Backend) Read(ctx context.Context, store *pods.Store) error {
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	return store.Sync(ctx, b.Client)
}

// Version makes the smallest call to the container runtime. Several at once are one.
func (b *Backend) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	answered := b.asking.DoChan("version", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTime)
		defer cancel()
		v, err := b.Client.Version(ctx, &runtimeapi.VersionRequest{})
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the smallest call takes longer than %v", versionTime)
		}
		return v, err
	})
	select {
	case r := <-answered:
		v, _ := r.Val.(*runtimeapi.VersionResponse)
		return v, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// versionTime is less than a check may take, so that its other reasons are told, too.
const versionTime = 2 * time.Second
