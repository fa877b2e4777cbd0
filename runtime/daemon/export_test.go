package daemon

import (
	"context"
	"log/slog"

	"github.com/wasmproxy/wasmproxy/runtime/config"
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
