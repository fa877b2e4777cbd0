package daemon

import (
	"context"
	"net"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// server answers calls. See [proxy.Server] and [docker.Server].
type server interface {
	Serve(ctx context.Context, l net.Listener) error
	Connections() int
}

// connect makes what speaks with the container runtime and with callers.
func (d *daemon) connect() error {
	c := d.config
	if c.Mode == config.ModeDocker {
		client := docker.NewClient(c.Backend, c.AllContainers())
		events := docker.NewEvents(d.reconciler.Store, &d.reconciler.Following, d.reconciler.Resync.Notify)
		d.link = docker.NewLink(client, events.Follow)
		d.reconciler.Connect(d.link, client)
		d.reconciler.Images = pods.NewImages(client)
		d.answers = docker.Answers
		d.server = docker.New(docker.Options{
			Client: client, Router: d.slots.Route, Store: d.reconciler.Store, Observer: d.observer, DrainTimeout: c.DrainTimeout,
		})
		return nil
	}
	runtime, err := d.dial(c.Backend)
	if err != nil {
		return err
	}
	images := runtime
	if c.ImageEndpoint != "" {
		if images, err = d.dial(c.ImageEndpoint); err != nil {
			return err
		}
	}
	d.reconciler.Connect(runtime, runtimeapi.NewRuntimeServiceClient(runtime))
	d.reconciler.Images = pods.NewImages(runtimeapi.NewImageServiceClient(images))
	d.answers = proxy.Answers
	d.server = proxy.New(proxy.Options{
		Backend: runtime, ImageBackend: images, Router: d.slots.Route, Observer: d.observer, DrainTimeout: c.DrainTimeout,
	})
	return nil
}

func (d *daemon) dial(endpoint string) (*grpc.ClientConn, error) {
	conn, err := proxy.Dial(endpoint)
	if err == nil {
		d.conns = append(d.conns, conn)
	}
	return conn, err
}
