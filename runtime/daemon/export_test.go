package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// RunWithoutTimeLimit is Run with guests that nothing stops.
func RunWithoutTimeLimit(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.engine, o.noBreaker = wasm.Options{Observer: observer, NoTimeLimit: true}, true
	return run(ctx, c, observer, o)
}

// RunWithoutBreaker is Run with plugins that are asked however often they fail.
func RunWithoutBreaker(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.noBreaker = true
	return run(ctx, c, observer, o)
}

// RunAwaitingPlugins is Run in which calls wait for plugins as long as it takes.
func RunAwaitingPlugins(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.startTime = time.Hour
	return run(ctx, c, observer, o)
}

// RunSyncingBriefly is Run with plugins that get Synchronize for one pod before they are active.
func RunSyncingBriefly(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.firstSyncTime = 0
	return run(ctx, c, observer, o)
}

// RunRetryingSoon is Run that tries sockets for metrics and commands again at once.
func RunRetryingSoon(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.adminRetry = 10 * time.Millisecond
	return run(ctx, c, observer, o)
}

// RunWithoutStartFills is Run that does not fill the store again for calls that a process before it has left.
func RunWithoutStartFills(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.startFills = nil
	return run(ctx, c, observer, o)
}

// RunWithoutScans is Run that repairs a cgroup file only when it knows that the file may have been
// overwritten.
func RunWithoutScans(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.startFills, o.scanPeriod = nil, 24*time.Hour
	return run(ctx, c, observer, o)
}

// Reloader returns a daemon that serves nobody: reload makes what its directories hold now
// the plugins of every call, as the watcher does when it has seen a change, and waits until
// nothing is under way.
func Reloader(ctx context.Context, c *config.Config, observer observe.Observer) (reload, closeAll func(), err error) {
	d, err := open(ctx, c, observer, optionsOf(c, observer))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	go d.slots.run(ctx)
	reload = func() {
		descriptions, _ := registry.Read(dirsOf(c))
		d.slots.post(func(ctx context.Context) { d.slots.update(ctx, registry.List{Plugins: descriptions, Complete: true}) })
		d.slots.settle()
	}
	return reload, func() {
		cancel()
		<-d.slots.ended
		d.close()
	}, nil
}

// settle waits until no load, introduction or fill is under way.
func (s *slots) settle() {
	for busy := true; busy; time.Sleep(time.Millisecond) {
		seen := make(chan bool, 1)
		s.post(func(context.Context) { seen <- s.underWay() })
		busy = <-seen
	}
}

func (s *slots) underWay() bool {
	return s.store == filling || s.awaits()
}
