package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
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
	o.reconcile.StartFills = nil
	return run(ctx, c, observer, o)
}

// RunWithoutScans is Run that repairs a cgroup file only when it knows that the file may have been
// overwritten.
func RunWithoutScans(ctx context.Context, c *config.Config, observer observe.Observer) error {
	o := optionsOf(c, observer)
	o.reconcile.StartFills, o.reconcile.ScanPeriod = nil, 24*time.Hour
	return run(ctx, c, observer, o)
}
