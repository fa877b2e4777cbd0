package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/slots"
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

// serveOperators serves what operators ask for, beside calls, which do not depend on it: on all sockets that the settings name,
// until one of the contexts is done. The next proxy wants them when this one begins to stop, which is the end of ctx.
func (d *daemon) serveOperators(ctx, background context.Context) {
	sources := admin.Sources{
		Observer: d.observer, Explain: d.explain, Metrics: d.metrics.Handler(),
		Healthy: d.selfCheck, NotReady: func(ctx context.Context) []string { return d.notReady(ctx, true) },
		Bypass: d.slots.Bypass.Status, Status: d.status, Plugins: d.plugins,
		Retry: d.slots.Retry, Shadow: d.slots.Shadows.Report,
		Record: slots.Recordings{Slots: d.slots, Version: d.version}.Record,
	}
	public := sources // of metrics-listen, where reasons have no errors of plugins
	public.NotReady = func(ctx context.Context) []string { return d.notReady(ctx, false) }

	var servers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(background, cancel)()
	if path := config.Path(d.config.AdminSocket); path != "" {
		serve := func(ctx context.Context, l net.Listener) error { return admin.Serve(ctx, l, sources) }
		failed := func(err error) observe.Event { return &observe.AdminSocketFailed{Socket: path, Err: err} }
		servers.Go(func() {
			d.keepServing(ctx, func(ctx context.Context) error { return d.serveSocket(ctx, path, adminMode, serve) }, failed)
		})
	}
	if path := config.Path(d.config.StatusSocket); path != "" {
		serve := func(ctx context.Context, l net.Listener) error {
			return admin.ServeStatus(ctx, netutil.LimitListener(l, maxScrapers), sources)
		}
		failed := func(err error) observe.Event { return &observe.StatusSocketFailed{Socket: path, Err: err} }
		servers.Go(func() {
			d.keepServing(ctx, func(ctx context.Context) error { return d.serveSocket(ctx, path, statusMode, serve) }, failed)
		})
	}
	if address := d.config.MetricsListen; address != "" {
		servers.Go(func() {
			d.keepServing(ctx, func(ctx context.Context) error {
				l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
				if err != nil {
					return err
				}
				d.observer.Observe(ctx, &observe.ServingMetrics{Address: l.Addr().String()})
				return admin.ServePublic(ctx, netutil.LimitListener(l, maxScrapers), public)
			}, func(err error) observe.Event { return &observe.MetricsListenFailed{Address: address, Err: err} })
		})
	}
	servers.Wait()
}

// serveSocket makes a socket, and calls serve until ctx is done. It is an error if something removes the socket: nobody can
// reach the proxy there any more.
func (d *daemon) serveSocket(ctx context.Context, path string, mode fs.FileMode, serve func(context.Context, net.Listener) error) error {
	l, err := proxy.Listen(ctx, path, mode)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		tick := time.NewTicker(d.adminRetry)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				cancel(errors.New("something has removed the socket"))
			}
		}
	}()
	if err := serve(ctx, l); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// keepServing calls serve again and again until ctx is done. If it fails, an event says so, and it is tried again later;
// there is one event until an attempt took longer than that.
func (d *daemon) keepServing(ctx context.Context, serve func(context.Context) error, failed func(error) observe.Event) {
	for reported := false; ; {
		start := time.Now()
		err := serve(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !reported || time.Since(start) > d.adminRetry {
			d.observer.Observe(ctx, failed(err))
			reported = true
		}
		select {
		case <-time.After(d.adminRetry):
		case <-ctx.Done():
		}
	}
}
