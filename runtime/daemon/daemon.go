package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/audit"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/observe/tracing"
	"github.com/wasmproxy/wasmproxy/runtime/peers"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/service"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
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
	startFills    []time.Duration // after the start: then the store is filled again
	scanPeriod    time.Duration
}

func optionsOf(c *config.Config, observer observe.Observer) options {
	return options{
		engine:    wasm.Options{Observer: observer, CacheDir: c.CacheDir, GuestMemory: c.GuestBytes()},
		startTime: startTime, firstSyncTime: firstSyncTime, adminRetry: adminRetry, startFills: lostDelays, scanPeriod: scanPeriod,
	}
}

func run(ctx context.Context, c *config.Config, observer observe.Observer, o options) error {
	o.passed = service.Passed()
	defer o.passed.Close()
	if o.settings != nil {
		reportLastGood(ctx, o.settings, observer)
	}
	err := runOnce(ctx, c, observer, o)
	if late := (*notStarted)(nil); o.settings == nil || !errors.As(err, &late) {
		return err
	}
	c, none := o.settings.FallBack(err)
	if none != nil {
		return err
	}
	reportLastGood(ctx, o.settings, observer)
	o.engine.CacheDir, o.engine.GuestMemory = c.CacheDir, c.GuestBytes()
	return runOnce(ctx, c, observer, o)
}

// notStarted is why a process could not begin to serve.
type notStarted struct{ error }

func (e *notStarted) Unwrap() error { return e.error }

// runOnce serves by settings.
func runOnce(ctx context.Context, c *config.Config, observer observe.Observer, o options) error {
	d, err := open(ctx, c, observer, o)
	if err != nil {
		return &notStarted{err}
	}
	defer d.close()
	return d.serve(ctx)
}

// daemon is everything that one run holds.
type daemon struct {
	config   *config.Config
	observer observe.Observer // of all sinks
	metrics  *metrics.Metrics
	traces   *tracing.Traces // nil if the environment asks for none
	audit    *audit.Log      // nil if the operator asks for none
	conns    []*grpc.ClientConn
	backend  *backend
	cgroups  *cgroup.FS // nil without a cgroup root
	systemd  *systemd.Manager
	ledger   *enforce.Ledger  // of the values that plugins want
	durable  *durable         // values that plugins keep
	lastGood *lastGood        // versions of plugins
	settings *settings.Source // nil: they are from no file
	passed   *service.Sockets // by systemd
	engine   *wasm.Engine
	store    *pods.Store
	queue    *workqueue.Queue
	server   server
	peers    peers.Set                                        // of the socket for calls
	answers  func(ctx context.Context, endpoint string) error // returns why the server does not answer
	link     *docker.Link                                     // nil unless the mode is docker
	notifier *service.Notifier                                // tells systemd
	current  current
	slots    *slots
	bypass   *bypassing
	version  string // of the program
	started  time.Time

	startTime     time.Duration   // for which calls wait for plugins at the start
	firstSyncTime time.Duration   // of Synchronize before a plugin is active
	adminRetry    time.Duration   // of sockets other than that for calls, and of node-features-file
	startFills    []time.Duration // when the store is filled again after the start
	scanPeriod    time.Duration
	syncTrigger   trigger       // synchronize plugins with pods that they do not know
	resyncTrigger trigger       // fill the store again
	lostTrigger   trigger       // the runtime may have done what it did not answer
	reloadTrigger trigger       // systemd has reloaded
	settling      chan struct{} // holds a token while the store is filled, or values are undone
	ticks         ticks

	busy      bool                          // post hooks did not end before the daemon had to
	following atomic.Bool                   // the store follows calls
	files     atomic.Pointer[registry.List] // of plugins, as they are now; never nil

	// present is of each plugin whose files are there, loaded or not, by id; nil until these are known.
	present atomic.Pointer[map[string]*intercept.Generation]
}

// open makes the parts, none of which does anything yet.
func open(ctx context.Context, c *config.Config, observer observe.Observer, o options) (*daemon, error) {
	d := &daemon{
		config: c, queue: workqueue.New(),
		startTime: o.startTime, firstSyncTime: o.firstSyncTime, adminRetry: o.adminRetry, startFills: o.startFills, scanPeriod: o.scanPeriod,
		syncTrigger: newTrigger(), resyncTrigger: newTrigger(), lostTrigger: newTrigger(), reloadTrigger: newTrigger(), settling: make(chan struct{}, 1),
	}
	d.notifier = service.NewNotifier(observer)
	d.ticks.current, d.ticks.stopping = &d.current, ctx.Done()
	d.version, d.started = o.version, time.Now()
	d.settings, d.passed = o.settings, o.passed
	d.metrics = metrics.New(o.version, d.levels, docker.Shapes())
	d.observer = d.sinks(ctx, o.version, observe.Sinks{observer, d.metrics, d.notifier})
	o.engine.Observer = d.observer
	d.current.missed, d.current.passUpdate = d.missed, d.passUpdate
	d.files.Store(&registry.List{})
	if err := d.assemble(ctx, o); err != nil {
		d.close()
		return nil, err
	}
	d.backend.unread.again = d.resyncTrigger.notify
	return d, nil
}

// sinks adds to the sinks those that the operator asks for. Variables that ask for traces may be
// meant for all services of a node, so that a wrong one must not keep the proxy from serving.
func (d *daemon) sinks(ctx context.Context, version string, always observe.Sinks) observe.Sinks {
	var err error
	if d.traces, err = tracing.New(ctx, version, always); err != nil {
		always.Observe(ctx, &observe.TracesOff{Err: err})
	}
	all := slices.Clone(always)
	if d.traces != nil {
		all = append(all, d.traces)
	}
	if c := d.config; c.AuditLog != "" {
		d.audit = audit.New(audit.Options{To: c.AuditLog, MaxBytes: c.AuditBytes(), Backups: int(c.AuditLogCount), Observer: always})
		all = append(all, d.audit)
	}
	return all
}

func (d *daemon) assemble(ctx context.Context, o options) (err error) {
	c := d.config
	if err = dirsOf(c).Distinct(); err != nil {
		return err
	}
	if d.cgroups, err = openCgroups(c); err != nil {
		return err
	}
	d.systemd = systemd.New(systemd.Addresses(), systemdEvents(d.observer, d.reloadTrigger))
	if d.cgroups != nil {
		d.cgroups.UseSystemd(d.systemd)
	}
	if d.ledger, err = openLedger(ctx, c, d.observer); err != nil {
		return err
	}
	if d.durable, err = openDurable(c, d.observer); err != nil {
		return err
	}
	d.bypass = newBypassing(c.BypassFile, d.observer, d.ledger, &d.current)
	d.lastGood = newLastGood(c.DataDir, d.observer)
	d.store = pods.NewStoreWith(enforce.KernelOf(d.cgroups))
	if d.engine, err = wasm.NewEngine(ctx, o.engine); err != nil {
		return err
	}
	d.slots = newSlots(d, &loader{
		observer: d.observer, noBreaker: o.noBreaker, uncalled: uncalledIn(c.Mode), modules: modules{d.engine, plugin.Features(d.cgroups.Version()), c.MaxLimits()}, servers: newHookServers(c, d.observer),
	})
	return d.connect()
}

func dirsOf(c *config.Config) registry.Dirs {
	return registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir}
}

func openCgroups(c *config.Config) (*cgroup.FS, error) {
	if c.CgroupRoot == "" {
		return nil, nil
	}
	return cgroup.Open(c.CgroupRoot, c.CgroupMode)
}

func openLedger(ctx context.Context, c *config.Config, observer observe.Observer) (*enforce.Ledger, error) {
	if c.StateDir == "" {
		return enforce.NewLedger(), nil
	}
	// Records have values written to cgroups. The directory is looked at before its mode is corrected, and the way to it also
	// when it is new: otherwise the next start would fail.
	err := registry.CheckTrust(c.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(c.StateDir, 0o700); err == nil {
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

// serve answers calls once plugins are loaded, which wait in the socket's queue until then, but not for long. What must
// not be ignored refuses its hooks from the first call on; other plugins that take longer are loaded while calls pass.
func (d *daemon) serve(ctx context.Context) error {
	listener, err := d.listen(ctx)
	if err != nil {
		return &notStarted{err}
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d.slots.good, d.slots.crashed = d.lastGood.begin(ctx, dirsOf(d.config))
	watch, err := registry.Open(background, d.observer, dirsOf(d.config), descriptionsOf(d.slots.good))
	if err != nil {
		listener.Close()
		return &notStarted{err}
	}
	list := watch.List()
	d.files.Store(&list)
	if d.config.BypassFile != "" {
		d.bypass.look(background, byFile, d.slots.bypass)
	}
	d.slots.update(background, list)
	d.slots.reconcile(background)
	var tasks sync.WaitGroup
	d.work(background, &tasks, watch)
	select { // until each plugin is active or cannot be loaded
	case <-d.slots.begun:
	case <-time.After(d.startTime):
	case <-ctx.Done():
	}
	d.observer.Observe(ctx, &observe.Serving{Listen: d.config.Listen, Backend: d.config.Backend})
	tasks.Go(func() { d.notifier.Run(background, d.selfCheck) })
	tasks.Go(func() { d.operators().serve(ctx, background) })
	tasks.Go(func() { keepSettings(background, d.settings, d.backend, d.observer) })
	stopping := d.reportStop(ctx)
	err = d.server.Serve(ctx, d.peers.Listen(listener))
	d.drain(background, stopping)
	stop()
	tasks.Wait()
	d.report()
	return err
}

// startTime is how long calls wait at the start for plugins to be loaded. kubelet's connection waits for 5 s in a restart, of
// which the process before may use drain-timeout and closeTime.
const startTime = time.Second

// work begins what is done beside calls, until ctx is done.
func (d *daemon) work(ctx context.Context, tasks *sync.WaitGroup, watch *registry.Watcher) {
	tasks.Go(func() { d.followFiles(ctx, watch) })
	tasks.Go(func() { d.backend.watch(ctx, d.refill) })
	tasks.Go(func() { d.bypass.watch(ctx, d.slots) })
	tasks.Go(func() { writeNodeFeatures(ctx, d.config.NodeFeatures, d.adminRetry, d.status, d.observer) })
	for _, run := range []func(context.Context){
		d.slots.run, d.syncMissed, d.followLost, d.scanFiles, d.durable.run, d.lastGood.run,
	} {
		tasks.Go(func() { run(ctx) })
	}
	if d.cgroups != nil {
		tasks.Go(func() { d.systemd.Run(ctx) })
	}
	if d.link != nil {
		tasks.Go(func() { d.link.Run(ctx) })
	}
}

// followFiles tells the slots of changes of the plugins' files until ctx is done.
func (d *daemon) followFiles(ctx context.Context, watch *registry.Watcher) {
	watch.Run(ctx, func(list registry.List) {
		d.files.Store(&list)
		d.slots.post(func(ctx context.Context) { d.slots.update(ctx, list) })
	})
}
