package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve CRI on a socket by way of the container runtime and the plugins",
		Long: `Serve CRI on a socket by way of the container runtime and the plugins.

Every setting is a flag, a key of the same name in the YAML file given by
--config, and an environment variable such as WASMPROXY_LOG_LEVEL; flags win
over variables, variables over the file. SIGTERM and SIGINT let calls in flight
finish first.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd.Flags())
			return serve(cmd, c, err)
		},
	}
	config.Flags(cmd.Flags())
	return cmd
}

// serve serves by settings that were loaded, or says what is wrong with them.
func serve(cmd *cobra.Command, c *config.Config, err error) error {
	if err != nil {
		return coded{err, exitUsage}
	}
	return daemon.RunVersion(cmd.Context(), version, c, newObserver(cmd, c))
}
