package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

func validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the settings and load every plugin as serve would, without serving",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd.Flags())
			if err != nil {
				return coded{err, exitUsage}
			}
			plugins, err := daemon.Check(cmd.Context(), c, slog.New(slog.DiscardHandler))
			for _, p := range plugins {
				fmt.Fprintln(cmd.OutOrStdout(), p)
			}
			if err == nil && len(plugins) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "no plugin in %s and %s\n", c.PluginDir, c.HookDir)
			}
			return err
		},
	}
	config.Flags(cmd.Flags())
	return cmd
}
