package slots

import (
	"context"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/durable"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Options are what Slots go by.
type Options struct {
	Config        *config.Config
	Observer      observe.Observer
	Loader        *loader.Loader
	Reconciler    *reconcile.Reconciler
	FirstSyncTime time.Duration                    // for which a new plugin is synchronized with pods before it becomes active
	Stopping      <-chan struct{}                  // closed when no tick may begin any more
	Reported      bool                             // the runtime tells of containers that start, stop and go
	Counts        func(id string) probation.Counts // of a plugin, since the start
	// Around is as in [intercept.Options]; may be nil.
	Around func(method string, inner cri.Interceptor) cri.Interceptor
}

// New returns Slots without plugins. The caller closes them.
func New(o Options) (*Slots, error) {
	c := o.Config
	s := &Slots{
		config: c, observer: o.Observer, loader: o.Loader, reconciler: o.Reconciler, firstSyncTime: o.FirstSyncTime,
		events: make(chan func(context.Context)), ended: make(chan struct{}), begun: make(chan struct{}), all: map[string]*slot{},
	}
	if err := dirsOf(c).Distinct(); err != nil {
		return nil, err
	}
	var err error
	if s.durable, err = durable.Open(c.StateDir, o.Observer); err != nil {
		return nil, err
	}
	s.lastGood, s.trials, s.counts = lastgood.NewSaver(c.DataDir, o.Observer), probation.New(c.DataDir, o.Observer), o.Counts
	s.Bypass = &Bypass{file: c.BypassFile, slots: s}
	s.Bypass.state.Store(&bypass.State{})
	s.Shadows = &Shadows{s, o.Loader.Shadows()}
	s.generations = generations{Options: o, passUpdate: s.Bypass.passUpdate, missed: o.Reconciler.Missed}
	s.ticks = ticks{generations: &s.generations, stopping: o.Stopping}
	s.files.Store(&registry.List{})
	return s, nil
}

// dirsOf are the directories that have plugins' files.
func dirsOf(c *config.Config) registry.Dirs {
	return registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir}
}

// Start reads the plugins' files and begins to load what they say: what must not be ignored refuses its hooks from then on.
// The error is that there is no way to watch the files.
func (s *Slots) Start(ctx context.Context) (err error) {
	s.good, s.crashed = s.lastGood.Begin(ctx, dirsOf(s.config))
	descriptions := make(map[string]registry.Description, len(s.good))
	for id, v := range s.good {
		descriptions[id] = v.Description
	}
	if s.watcher, err = registry.Open(ctx, s.observer, dirsOf(s.config), descriptions); err != nil {
		return err
	}
	list := s.watcher.List()
	s.files.Store(&list)
	if s.config.BypassFile != "" {
		s.Bypass.look(ctx, s.bypass)
	}
	if s.bypassed {
		s.trials.Begin(ctx, nil)
	} else {
		s.trials.Begin(ctx, list.Plugins)
	}
	found(ctx, s.trials, list, s.config.PluginDir)
	s.update(ctx, list)
	s.reconcile(ctx)
	return nil
}

// Run follows the files, after Start, until ctx is done.
func (s *Slots) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() {
		s.watcher.Run(ctx, func(list registry.List) {
			found(ctx, s.trials, list, s.config.PluginDir)
			s.files.Store(&list)
			s.post(func(ctx context.Context) { s.update(ctx, list) })
		})
	})
	all := []func(context.Context){s.run, s.Bypass.watch, s.generations.syncMissed, s.durable.Run, s.lastGood.Run, s.trials.Run}
	for _, run := range all {
		tasks.Go(func() { run(ctx) })
	}
	tasks.Wait()
}

// Begun is closed when each plugin of the start is active, or cannot be loaded.
func (s *Slots) Begun() <-chan struct{} { return s.begun }

// Route is a cri.Router of the plugins of the moment.
func (s *Slots) Route(method string) cri.Interceptor { return s.generations.Route(method) }

// Unread are the directories that cannot be read or are not trusted: their plugins stay as they are.
func (s *Slots) Unread() []error { return s.files.Load().Unread }

// Saved reports whether the last write of each file of a plugin's state succeeded.
func (s *Slots) Saved() bool { return s.durable.Saved() && s.lastGood.Saved() && s.trials.Saved() }

// Answer returns nil once the owner of the slots has answered, which waits for nothing; else why ctx is done.
func (s *Slots) Answer(ctx context.Context) error {
	_, err := ask(ctx, s, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// Close releases every plugin, and waits for ticks and loads until ctx is done. It reports whether they ended. No call is in
// flight, and Run has ended.
func (s *Slots) Close(ctx context.Context) (ended bool) {
	s.generations.swap(nil)
	for _, p := range s.order {
		p.unload()
	}
	s.all, s.order = nil, nil
	ended = await(ctx, &s.ticks.running, "ticks", s.observer)
	return await(ctx, &s.jobs, "loads of plugins", s.observer) && ended
}

// await waits for what is under way. It must not keep the process: a tick may wait for a
// runtime that does not answer, and a compiler in this process cannot be stopped.
func await(ctx context.Context, tasks *sync.WaitGroup, of string, observer observe.Observer) (ended bool) {
	all, start := make(chan struct{}), time.Now()
	go func() {
		tasks.Wait()
		close(all)
	}()
	select {
	case <-all:
		return true
	case <-ctx.Done():
		observer.Observe(ctx, &observe.ShutdownLate{Of: of, After: time.Since(start)})
		return false
	}
}

// Save saves what plugins keep, after Close.
func (s *Slots) Save(ctx context.Context) {
	s.durable.Close()
	s.lastGood.Close(ctx)
	s.trials.Close(ctx)
}
