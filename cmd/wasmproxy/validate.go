package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the settings and load every plugin as serve would, without serving",
		Long: `It prints a line for each plugin that loads, in the order of the chain: its id, its
description, its failure policy, dry-run if its file sets it, and the hooks in which it is
called. Lines for warnings that serve would log at its load follow, and for a shadow that would
not load. A JSON file that describes no plugin is a warning, too. Plugins that their files disable
come last. Errors of the other plugins go to stderr. The command calls no hook server and needs no
runtime. It compiles new plugins into the cache.

Exit codes: 0 all plugins load, 1 one does not, 2 a setting is wrong, or serve could not start with it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadSettings(cmd, "/")
			if err != nil {
				return err
			}
			newObserver(cmd, c)
			plugins, err := daemon.Check(cmd.Context(), c, true)
			for _, p := range plugins {
				fmt.Fprintln(cmd.OutOrStdout(), p)
			}
			if err == nil && len(plugins) == 0 {
				dirs := plugin.Name(c.PluginDir)
				if c.HookDir != "" {
					dirs += " and " + plugin.Name(c.HookDir)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "no plugin in %s\n", dirs)
			}
			if errors.As(err, new(*daemon.NotStarted)) {
				return coded{err, exitUsage}
			}
			return err
		},
	}
	config.Flags(cmd.Flags())
	return cmd
}
