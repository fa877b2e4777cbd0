package daemon

import (
	"context"
	"errors"
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
)

// Filling the store.
const (
	syncTime  = 2 * time.Minute // how long it may take
	retryTime = 5 * time.Second // until it is tried again
	// maxUnreadTime is the longest until it is tried again for objects that the runtime cannot
	// describe. The first is retryTime, and each twice the one before.
	maxUnreadTime = 10 * time.Minute
)

// backend is the container runtime: the connection that calls go over, and the
// proxy's own questions to it.
type backend struct {
	conn     connection
	client   runtimeClient
	store    *pods.Store
	observer observe.Observer

	life   atomic.Uint64 // counts how often the connection was lost, from 1
	filled atomic.Uint64 // the life in which the store was filled last

	failures repeats // of filling the store
	unread   unread

	asking   singleflight.Group              // for the version
	cgroups  *cgroup.FS                      // nil without a cgroup root
	node     atomic.Pointer[crifield.Node]   // never nil; replaced when the runtime is another
	handlers atomic.Pointer[runtimeHandlers] // likewise
}

// unread has the store filled again until the runtime describes what it lists. It is for whoever
// fills the store.
type unread struct {
	again func() // nil: nobody fills it again
	count int    // of pods and containers
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
		u.timer = time.AfterFunc(u.after, u.again)
	}
}

func (u *unread) end() {
	if u.timer != nil {
		u.timer.Stop()
	}
	u.count = 0
}

// runtimeClient is what the proxy asks of the container runtime on its own behalf. Every
// [runtimeapi.RuntimeServiceClient] is one.
type runtimeClient interface {
	enforce.Backend
	Version(context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption) (*runtimeapi.VersionResponse, error)
	RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest, ...grpc.CallOption) (*runtimeapi.RuntimeConfigResponse, error)
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// connection is what the backend has to know of a *grpc.ClientConn.
type connection interface {
	Target() string
	Connect()
	GetState() connectivity.State
	WaitForStateChange(context.Context, connectivity.State) bool
}

func newBackend(conn connection, client runtimeClient, store *pods.Store, cgroups *cgroup.FS, observer observe.Observer) *backend {
	b := &backend{conn: conn, client: client, store: store, cgroups: cgroups, observer: observer}
	b.life.Store(1)
	b.node.Store(&crifield.Node{})
	b.handlers.Store(&runtimeHandlers{})
	return b
}

// watch calls behind while the connection is up and the store was not filled
// since it last came up, until ctx is done. It keeps the connection up.
func (b *backend) watch(ctx context.Context, behind func(context.Context)) {
	l := link{observer: b.observer, target: b.conn.Target()}
	var refill time.Time // not before then
	for ctx.Err() == nil {
		var again time.Time // when to look though the state is the same; zero: never
		state := b.conn.GetState()
		switch state {
		case connectivity.Ready:
			again = l.up(ctx)
			if b.behind() && !time.Now().Before(refill) {
				behind(ctx)
				if b.behind() || l.unsteady() {
					refill = time.Now().Add(retryTime)
				}
			}
			if b.behind() {
				again = sooner(again, refill)
			}
		case connectivity.TransientFailure:
			l.failed(ctx)
		case connectivity.Idle:
			b.conn.Connect()
		}
		if b.changed(ctx, state, again) && state == connectivity.Ready {
			b.life.Add(1) // lost, even if it is up again by now: states pass faster than they are looked at
			if l.lost(ctx); !l.unsteady() {
				refill = time.Time{}
			}
		}
	}
}

// changed waits until the connection's state is another, as it then reports, or
// until the time comes to look again, if there is one.
func (b *backend) changed(ctx context.Context, state connectivity.State, again time.Time) bool {
	if !again.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, again)
		defer cancel()
	}
	return b.conn.WaitForStateChange(ctx, state)
}

// behind reports whether the store was not filled in this life of the connection.
func (b *backend) behind() bool { return b.filled.Load() != b.life.Load() }

// complete reports whether a store has all pods and containers after a Sync with this error, though
// perhaps some by the list alone.
func complete(err error) bool { return err == nil || errors.As(err, new(*pods.UnreadError)) }

// fill makes the store hold what the backend has, of which objects that it cannot describe are
// known by its lists. A backend that cannot be
// asked leaves it as it is; hooks then read through, one object at a time, and
// watch tries again.
func (b *backend) fill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	life, start := b.life.Load(), time.Now()
	err := b.store.Sync(ctx, b.client)
	if !complete(err) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return // nobody wants it any more
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

// version makes the smallest call to the container runtime. Several at once are one.
func (b *backend) version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	answered := b.asking.DoChan("version", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTime)
		defer cancel()
		return b.client.Version(ctx, &runtimeapi.VersionRequest{})
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
