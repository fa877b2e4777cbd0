package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"time"

	"golang.org/x/net/netutil"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// adminMode is for the proxy's user alone: answers name all pods of the node.
const adminMode = 0o600

// statusMode is for the proxy's user and group: answers have no secret and change nothing, and errors of plugins
// may name pods. A pod that mounts the directory needs no other right than the group of the proxy.
const statusMode = 0o660

// adminRetry is when a socket is tried again that could not be made. The proxy before may still
// have it.
const adminRetry = 10 * time.Second

// serveAdmin serves the admin socket until one of the contexts is done.
func (d *daemon) serveAdmin(ctx, background context.Context) {
	path := config.Path(d.config.AdminSocket)
	d.serveSocket(ctx, background, path, adminMode, admin.Serve, func(err error) observe.Event {
		return &observe.AdminSocketFailed{Socket: path, Err: err}
	})
}

// serveStatus serves the status socket until one of the contexts is done.
func (d *daemon) serveStatus(ctx, background context.Context) {
	path := config.Path(d.config.StatusSocket)
	limited := func(ctx context.Context, l net.Listener, s admin.Sources) error {
		return admin.ServeStatus(ctx, netutil.LimitListener(l, maxScrapers), s)
	}
	d.serveSocket(ctx, background, path, statusMode, limited, func(err error) observe.Event {
		return &observe.StatusSocketFailed{Socket: path, Err: err}
	})
}

// serveSocket serves a unix socket, if path is not empty. Calls do not depend on it. The next proxy wants the socket when
// this one begins to stop, which is the end of ctx.
func (d *daemon) serveSocket(ctx, background context.Context, path string, mode fs.FileMode,
	serve func(context.Context, net.Listener, admin.Sources) error, failed func(error) observe.Event) {
	if path == "" {
		return
	}
	d.keepServing(ctx, background, func(ctx context.Context) error {
		l, err := proxy.Listen(ctx, path, mode)
		if err != nil {
			return err
		}
		return serve(ctx, l, d.sources())
	}, failed)
}

func (d *daemon) explain(ctx context.Context, name string) (*explain.Report, error) {
	if !d.following.Load() {
		return d.explainLeft(ctx, name)
	}
	report, err := d.enforcer().Explain(ctx, name)
	if errors.Is(err, explain.ErrNotFound) && d.backend.behind() {
		return nil, admin.NotReady("the proxy has not read the pods of the container runtime yet; " + err.Error())
	}
	return report, err
}

// explainLeft tells of the values that plugins have left, while none is loaded. The daemon's store
// follows no pods then, so that the runtime is asked for them.
func (d *daemon) explainLeft(ctx context.Context, name string) (*explain.Report, error) {
	switch {
	case !d.ledger.Empty(), len(d.ledger.IgnoredPods()) > 0:
	case d.bypass.state.Load().On:
		return nil, admin.NotReady("plugins are bypassed and none has left a value, so the proxy passes every call as it comes and knows of no pod")
	default:
		return nil, admin.NotReady("no plugin is loaded and none has left a value, so the proxy passes every call as it comes and knows of no pod")
	}
	left := d.enforcer()
	left.Store = pods.NewStoreWith(enforce.KernelOf(d.cgroups))
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	syncErr := left.Store.Sync(ctx, left.Backend)
	report, err := left.Explain(ctx, name)
	if errors.Is(err, explain.ErrNotFound) && !complete(syncErr) {
		return nil, admin.NotReady("the container runtime does not tell of its pods: " + syncErr.Error())
	}
	return report, err
}
