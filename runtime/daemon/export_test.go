package daemon

import (
	"context"
	"log/slog"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// RunWithoutTimeLimit is Run with guests that nothing stops.
func RunWithoutTimeLimit(ctx context.Context, c *config.Config, log *slog.Logger) error {
	return run(ctx, c, log, options{engine: wasm.Options{Log: log, NoTimeLimit: true}, noBreaker: true})
}

// RunWithoutBreaker is Run with plugins that are asked however often they fail.
func RunWithoutBreaker(ctx context.Context, c *config.Config, log *slog.Logger) error {
	o := optionsOf(c, log)
	o.noBreaker = true
	return run(ctx, c, log, o)
}

// RunSweepingBriefly is Run with plugins that are told of one pod before they are in force.
func RunSweepingBriefly(ctx context.Context, c *config.Config, log *slog.Logger) error {
	o := optionsOf(c, log)
	o.sweepTime = 0
	return run(ctx, c, log, o)
}

// Reloader returns a daemon that serves nobody: reload makes what its directories hold now
// the plugins of every call, as the watcher does when it has seen a change.
func Reloader(ctx context.Context, c *config.Config, log *slog.Logger) (reload, closeAll func(), err error) {
	d, err := open(ctx, c, log, optionsOf(c, log))
	if err != nil {
		return nil, nil, err
	}
	return func() {
		descriptions, _ := registry.Read(registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir})
		d.apply(ctx, descriptions)
	}, d.close, nil
}
