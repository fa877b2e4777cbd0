package daemon

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/audit"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/observe/tracing"
	"github.com/wasmproxy/wasmproxy/runtime/peers"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
	"github.com/wasmproxy/wasmproxy/runtime/service"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
	"github.com/wasmproxy/wasmproxy/runtime/slots"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// Run serves by these settings until ctx is done and calls in flight have
// ended. The error says what it could not start with.
func Run(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.version = "development"
	return run(ctx, c, observer, o)
}

// Serve is Run of a version of the program, which metrics show, by the active settings of a source. If the proxy cannot
// start with those of its file, it starts with the last good ones.
func Serve(ctx context.Context, version string, c *config.Config, source *settings.Source, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.version, o.settings = version, source
	return run(ctx, c, observer, o)
}

// options are what tests run otherwise.
type options struct {
	version       string           // of the program
	settings      *settings.Source // nil: they are from no file
	passed        *service.Sockets // by systemd
	engine        wasm.Options
	noBreaker     bool          // plugins are called however often they fail
	startTime     time.Duration // for which calls wait for plugins at the start
	firstSyncTime time.Duration // of Synchronize before a plugin is active
	adminRetry    time.Duration
	reconcile     reconcile.Timing
}

func optionsOf(c *config.Config, observer observe.Observer) options {
	return options{
		engine:    wasm.Options{Observer: observer, CacheDir: c.CacheDir, GuestMemory: c.GuestBytes()},
		startTime: startTime, firstSyncTime: slots.FirstSyncTime, adminRetry: adminRetry, reconcile: reconcile.DefaultTiming(),
	}
}

func run(ctx context.Context, c *config.Config, observer observe.Observer, o options) error {
	o.passed = service.Passed()
	defer o.passed.Close()
	if o.settings != nil {
		reportLastGood(ctx, o.settings, observer)
	}
	err := runOnce(ctx, c, observer, o)
	if late := (*NotStarted)(nil); o.settings == nil || !errors.As(err, &late) {
		return err
	}
	c, none := o.settings.FallBack(err, "/")
	if none != nil {
		return err
	}
	reportLastGood(ctx, o.settings, observer)
	o.engine.CacheDir, o.engine.GuestMemory = c.CacheDir, c.GuestBytes()
	return runOnce(ctx, c, observer, o)
}

// NotStarted is why a process cannot begin to serve by its settings.
type NotStarted struct{ error }

func (e *NotStarted) Unwrap() error { return e.error }

// runOnce serves by settings.
func runOnce(ctx context.Context, c *config.Config, observer observe.Observer, o options) error {
	d, err := open(ctx, c, observer, o)
	if err != nil {
		return &NotStarted{err}
	}
	defer d.close()
	return d.serve(ctx)
}

// server answers calls. See [proxy.Server] and [docker.Server].
type server interface {
	Serve(ctx context.Context, l net.Listener) error
}

// daemon is everything that one run holds.
type daemon struct {
	config     *config.Config
	observer   observe.Observer // of all sinks
	metrics    *metrics.Metrics
	traces     *tracing.Traces // nil if the environment asks for none
	audit      *audit.Log      // nil if the operator asks for none
	conns      []*grpc.ClientConn
	reconciler *reconcile.Reconciler
	settings   *settings.Source // nil: they are from no file
	unkept     atomic.Bool      // the settings could not be saved as the last good ones
	passed     *service.Sockets // by systemd
	engine     *wasm.Engine
	server     server
	peers      peers.Set                                        // of the socket for calls
	answers    func(ctx context.Context, endpoint string) error // returns why the server does not answer
	link       *docker.Link                                     // nil unless the mode is docker
	notifier   *service.Notifier                                // tells systemd
	slots      *slots.Slots                                     // nil until they are made
	version    string                                           // of the program
	started    time.Time

	startTime  time.Duration // for which calls wait for plugins at the start
	adminRetry time.Duration // of sockets other than that for calls, and of node-features-file
	busy       bool          // post hooks did not end before the daemon had to
}

// open makes the parts. They do nothing yet.
func open(ctx context.Context, c *config.Config, observer observe.Observer, o options) (*daemon, error) {
	d := &daemon{
		config: c, notifier: service.NewNotifier(observer), version: o.version, started: time.Now(), settings: o.settings, passed: o.passed,
		startTime: o.startTime, adminRetry: o.adminRetry,
	}
	d.metrics = metrics.New(o.version, d.levels, docker.Shapes())
	always := observe.Sinks{observer, d.metrics, d.notifier}
	var err error
	if d.traces, err = tracing.New(ctx, o.version, always); err != nil {
		// Variables that ask for traces may be meant for all services of a node: a wrong one must not keep the proxy from serving.
		always.Observe(ctx, &observe.TracesOff{Err: err})
	}
	all := slices.Clone(always)
	if d.traces != nil {
		all = append(all, d.traces)
	}
	if c.AuditLog != "" {
		d.audit = audit.New(audit.Options{To: c.AuditLog, MaxBytes: c.AuditBytes(), Backups: int(c.AuditLogCount), Observer: always})
		all = append(all, d.audit)
	}
	d.observer = all
	o.engine.Observer = d.observer
	if err := d.assemble(ctx, o); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *daemon) assemble(ctx context.Context, o options) (err error) {
	c := d.config
	if d.reconciler, err = reconcile.Open(ctx, c, o.reconcile, d.observer); err != nil {
		return err
	}
	if d.engine, err = wasm.NewEngine(ctx, o.engine); err != nil {
		return err
	}
	load := loader.Options{
		Config: c, Engine: d.engine, Features: plugin.Features(d.reconciler.Cgroups.Version()), NoBreaker: o.noBreaker, Observer: d.observer,
	}
	docked := c.Mode == config.ModeDocker
	if docked {
		load.Uncalled = docker.UncalledHooks()
	}
	options := slots.Options{
		Config: c, Observer: d.observer, Loader: loader.New(load), Reconciler: d.reconciler, FirstSyncTime: o.firstSyncTime,
		Stopping: ctx.Done(), Reported: docked, Counts: d.ofProbation,
	}
	if d.traces != nil {
		options.Around = d.traces.Around
	}
	if d.slots, err = slots.New(options); err != nil {
		return err
	}
	if docked {
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

// listenMode is of the socket for calls: kubelet may run with a group of its own.
const listenMode = 0o660

// serve answers calls once plugins are loaded, which wait in the socket's queue until then, but not for long. What must
// not be ignored refuses its hooks from the first call on; other plugins that take longer are loaded while calls pass.
func (d *daemon) serve(ctx context.Context) error {
	path := config.Path(d.config.Listen)
	listener, err := d.passed.Listener(path)
	if listener == nil && err == nil { // systemd has passed none
		listener, err = proxy.Listen(ctx, path, listenMode)
	}
	if err != nil {
		return &NotStarted{err}
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := d.slots.Start(background); err != nil {
		listener.Close()
		return &NotStarted{err}
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { d.notifier.Run(background, d.selfCheck) })
	tasks.Go(func() { d.reconciler.Run(background) })
	tasks.Go(func() { d.slots.Run(background) })
	tasks.Go(func() { d.writeNodeFeatures(background) })
	if d.link != nil {
		tasks.Go(func() { d.link.Run(background) })
	}
	select { // until each plugin is active or cannot be loaded
	case <-d.slots.Begun():
	case <-time.After(d.startTime):
	case <-ctx.Done():
	}
	d.observer.Observe(ctx, &observe.Serving{Listen: d.config.Listen, Backend: d.config.Backend})
	tasks.Go(func() { d.serveOperators(ctx, background) })
	tasks.Go(func() { d.keepSettings(background) })
	stopping := make(chan time.Time, 1) // has the time once ctx has told the daemon to stop
	context.AfterFunc(ctx, func() {
		begun := time.Now()
		d.observer.Observe(context.WithoutCancel(ctx), &observe.Stopping{DrainTimeout: d.config.DrainTimeout})
		stopping <- begun
	})
	err = d.server.Serve(ctx, d.peers.Listen(listener))

	// Post hooks may end within what calls have left of the drain timeout, which began then.
	start := time.Now()
	select {
	case <-ctx.Done():
		start = <-stopping
	default: // the listener failed
	}
	draining, cancel := context.WithDeadline(background, start.Add(d.config.DrainTimeout))
	defer cancel()
	if err := d.reconciler.Queue.Drain(draining); err != nil {
		d.busy = true
		d.observer.Observe(draining, &observe.ShutdownLate{Of: "post hooks", After: time.Since(start)})
	}
	stop()
	tasks.Wait()
	called, failed := d.metrics.HookCalls()
	d.observer.Observe(context.Background(), &observe.Served{
		Calls: d.metrics.Calls(), Hooks: called, HookFailures: failed, Metrics: d.slots.Counted(),
	})
	return err
}

// startTime is how long calls wait at the start for plugins to be loaded. kubelet's connection waits for 5 s in a restart, of
// which the process before may use drain-timeout and closeTime.
const startTime = time.Second
