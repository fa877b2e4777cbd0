package main

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// warnOfVariables tells of the environment variables that look like settings and are none.
func warnOfVariables(ctx context.Context, observer observe.Observer) {
	for _, name := range config.UnknownVariables() {
		observer.Observe(ctx, &observe.VariableIgnored{Variable: name})
	}
}
