package daemon

import (
	"context"
	"log/slog"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// RunWithoutTimeLimit is Run with guests that nothing stops.
func RunWithoutTimeLimit(ctx context.Context, c *config.Config, log *slog.Logger) error {
	return run(ctx, c, log, wasm.Options{Log: log, NoTimeLimit: true})
}
