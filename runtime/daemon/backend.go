package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// syncTime is how long filling the store may take.
const syncTime = 2 * time.Minute

// backend is the container runtime: the connection that calls go over, and the
// proxy's own questions to it.
type backend struct {
	conn   *grpc.ClientConn
	client runtimeapi.RuntimeServiceClient
	store  *pods.Store
	log    *slog.Logger
	filled atomic.Bool // since the connection last came up
}

func newBackend(conn *grpc.ClientConn, store *pods.Store, log *slog.Logger) *backend {
	return &backend{conn: conn, client: runtimeapi.NewRuntimeServiceClient(conn), store: store, log: log}
}

// watch calls behind each time the connection is up and the store was not
// filled since, until ctx is done.
func (b *backend) watch(ctx context.Context, behind func(context.Context)) {
	lost := false
	for state := b.conn.GetState(); ; state = b.conn.GetState() {
		switch state {
		case connectivity.Ready:
			lost = false
			b.log.InfoContext(ctx, "connected to the runtime", "backend", b.conn.Target())
			if !b.filled.Load() {
				behind(ctx)
			}
		case connectivity.TransientFailure, connectivity.Idle:
			b.filled.Store(false)
			if !lost {
				b.log.WarnContext(ctx, "no connection to the runtime", "backend", b.conn.Target())
			}
			lost = true
			b.conn.Connect()
		}
		if !b.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// fill makes the store hold what the backend has. A backend that cannot be
// asked leaves it as it is; hooks then read through, one object at a time.
func (b *backend) fill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	start := time.Now()
	if err := b.store.Sync(ctx, b.client); err != nil {
		b.log.WarnContext(ctx, "the store could not be filled", "err", err)
		return
	}
	b.filled.Store(true)
	pods, containers := b.store.Len()
	b.log.InfoContext(ctx, "store filled", "pods", pods, "containers", containers, "took", time.Since(start))
}

// version asks what the runtime calls itself.
func (b *backend) version(ctx context.Context) (name, version string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := b.client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return "", ""
	}
	return v.GetRuntimeName(), v.GetRuntimeVersion()
}
