package main

import (
	"errors"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve CRI on a socket by way of the container runtime and the plugins",
		Long: `Every setting is a flag, a key of the same name in the YAML file given by
--config, and an environment variable such as WASMPROXY_LOG_LEVEL; flags win
over variables, variables over the file. If the file cannot be used, the proxy
serves with the last good settings, which it keeps in data-dir, and says so.
SIGTERM, SIGINT and SIGHUP end the proxy, after the calls in flight.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd, func(f config.File) (*config.Config, error) { return config.LoadFrom(cmd.Flags(), f) })
		},
	}
	config.Flags(cmd.Flags())
	return cmd
}

// gcPercent is how much the heap grows, in percent of what is in use, before garbage is collected. Go's own 100 have the proxy
// hold more memory, and save less than 20 µs of a call: see deploy/RATIONALE.md.
const gcPercent = 50

// serve serves by the settings that load makes of the settings file, or by the last good ones.
func serve(cmd *cobra.Command, load func(config.File) (*config.Config, error)) error {
	outliveReader()
	source := settings.New(func() config.File { return config.ReadFile(cmd.Flags()) }, load)
	c, err := source.Load()
	if wrong := err; wrong != nil {
		c, err = source.FallBack(wrong, "/")
		switch {
		case errors.Is(err, settings.ErrNone):
			return coded{wrong, exitUsage}
		case err != nil: // why there are no others
			return coded{errors.Join(wrong, err), exitUsage}
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return daemon.Serve(cmd.Context(), version, c, source, newObserver(cmd, c))
}
