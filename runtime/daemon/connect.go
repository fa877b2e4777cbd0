package daemon

import (
	"cmp"
	"context"
	"net"
	"sync/atomic"
	"time"

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
		d.connectDocker()
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
	d.backend = newBackend(runtime, runtimeapi.NewRuntimeServiceClient(runtime), d.store, d.cgroups, d.observer)
	d.answers = proxy.Answers
	d.server = proxy.New(proxy.Options{
		Backend: runtime, ImageBackend: images, Router: d.current.Route, Observer: d.observer, DrainTimeout: c.DrainTimeout,
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

func (d *daemon) connectDocker() {
	c := d.config
	d.current.told = true // by events
	client := docker.NewClient(c.Backend, c.AllContainers())
	events := &containerEvents{store: d.store, following: &d.following, refill: d.resyncTrigger}
	d.link = docker.NewLink(client, events.follow)
	d.backend = newBackend(d.link, client, d.store, d.cgroups, d.observer)
	d.answers = docker.Answers
	d.server = docker.New(docker.Options{
		Client: client, Router: d.current.Route, Store: d.store, Observer: d.observer, DrainTimeout: c.DrainTimeout,
	})
}

// removedTime is how long the answer to a removal may take to reach the store after Docker's event
// of it. Beyond maxRemovals at a time the store is filled again at once.
const (
	removedTime = time.Second
	maxRemovals = 1024
)

// containerEvents brings to the store what happens to containers without a request that the proxy sees: with
// --rm Docker removes them, and with a restart policy it starts them.
type containerEvents struct {
	store     *pods.Store
	following *atomic.Bool // the store follows calls
	refill    trigger      // fills the store again
	removals  atomic.Int64 // that wait for the answer
}

func (c *containerEvents) follow(e docker.Event) {
	if !c.following.Load() {
		return
	}
	switch {
	case e.Action == docker.Destroyed && c.removals.Load() >= maxRemovals:
		c.refill.notify()
	case e.Action == docker.Destroyed:
		c.removals.Add(1)
		time.AfterFunc(removedTime, func() {
			defer c.removals.Add(-1)
			_, pod := c.store.Pod(e.ID)
			if _, container := c.store.Container(e.ID); pod || container {
				c.refill.notify()
			}
		})
	case e.Action == docker.Started && !e.Pod:
		c.store.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: e.ID}, nil)
	case e.Action == docker.Died && e.Alone: // with its pod
		of, _ := c.store.Container(e.ID)
		c.store.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: cmp.Or(of.PodID, e.ID)}, nil)
	case e.Action == docker.Died && !e.Pod:
		c.store.Observe(nil, &runtimeapi.StopContainerRequest{ContainerId: e.ID}, nil)
	case e.Action == docker.Died:
		c.store.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: e.ID}, nil)
	}
}
