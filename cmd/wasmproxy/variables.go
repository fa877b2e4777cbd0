package main

import (
	"log/slog"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// warnOfVariables logs the environment variables that look like settings and are none.
func warnOfVariables(log *slog.Logger) {
	for _, name := range config.UnknownVariables() {
		log.Warn("environment variable ignored: no setting has this name", "variable", name)
	}
}
