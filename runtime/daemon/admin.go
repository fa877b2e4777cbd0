package daemon

import (
	"context"
	"io/fs"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
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

// maxScrapers is how many connections to metrics-listen, and to status-socket, are served at a time. A node has one or
// two Prometheus servers, and as many probes.
const maxScrapers = 32

// operators serves what operators ask for, beside calls, which do not depend on it.
type operators struct {
	config  *config.Config
	retry   time.Duration // of a socket that could not be made
	sources admin.Sources // of the sockets
	public  admin.Sources // of metrics-listen
}

// serve serves all sockets that the settings name until one of the contexts is done. The next proxy wants them when this
// one begins to stop, which is the end of ctx.
func (o *operators) serve(ctx, background context.Context) {
	var servers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(background, cancel)()
	if path := config.Path(o.config.AdminSocket); path != "" {
		servers.Go(func() {
			o.keepServing(ctx, func(ctx context.Context) error {
				return o.serveSocket(ctx, path, adminMode, admin.Serve)
			}, func(err error) observe.Event { return &observe.AdminSocketFailed{Socket: path, Err: err} })
		})
	}
	if path := config.Path(o.config.StatusSocket); path != "" {
		servers.Go(func() {
			o.keepServing(ctx, func(ctx context.Context) error {
				return o.serveSocket(ctx, path, statusMode, func(ctx context.Context, l net.Listener, s admin.Sources) error {
					return admin.ServeStatus(ctx, netutil.LimitListener(l, maxScrapers), s)
				})
			}, func(err error) observe.Event { return &observe.StatusSocketFailed{Socket: path, Err: err} })
		})
	}
	if address := o.config.MetricsListen; address != "" {
		servers.Go(func() {
			o.keepServing(ctx, func(ctx context.Context) error {
				l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
				if err != nil {
					return err
				}
				o.public.Observer.Observe(ctx, &observe.ServingMetrics{Address: l.Addr().String()})
				return admin.ServePublic(ctx, netutil.LimitListener(l, maxScrapers), o.public)
			}, func(err error) observe.Event { return &observe.MetricsListenFailed{Address: address, Err: err} })
		})
	}
	servers.Wait()
}

func (o *operators) serveSocket(
	ctx context.Context, path string, mode fs.FileMode, serve func(context.Context, net.Listener, admin.Sources) error,
) error {
	l, err := proxy.Listen(ctx, path, mode)
	if err != nil {
		return err
	}
	return serve(ctx, l, o.sources)
}

// keepServing calls serve again and again until ctx is done. If it fails, an event says so, and it is tried again later;
// there is one event until an attempt took longer than that.
func (o *operators) keepServing(ctx context.Context, serve func(context.Context) error, failed func(error) observe.Event) {
	for reported := false; ; {
		start := time.Now()
		err := serve(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !reported || time.Since(start) > o.retry {
			o.sources.Observer.Observe(ctx, failed(err))
			reported = true
		}
		select {
		case <-time.After(o.retry):
		case <-ctx.Done():
		}
	}
}
