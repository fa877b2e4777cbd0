package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
)

const reloadLong = `Put a new process in the place of the proxy that runs, without a failed call.

The new process runs the program that is now at the proxy's path, with the same arguments, and
reads the settings again. It loads the plugins first. Calls with hooks, and calls that change pods or
containers, then wait for a moment until it has the pods and the values of plugins. The old process
takes no new calls, and ends with its last call. If the new process cannot start, the old one goes on, and the error says why.

The settings listen and state-dir cannot change in this way, nor can the unit of systemd: restart
the service for that. Plugins that change need no reload.`

func reloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Put a new process in the place of the proxy that runs, without a failed call",
		Long:  reloadLong,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadSettings(cmd, "/")
			if err != nil {
				return err
			}
			if c.AdminSocket == "" {
				return wrongUsage("admin-socket is empty: name the proxy's admin socket with --admin-socket; a proxy without one can only be restarted")
			}
			pid, err := admin.Client{Socket: config.Path(c.AdminSocket)}.Reload(cmd.Context())
			if err != nil {
				return fmt.Errorf("reloading the proxy: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "process %d serves now\n", pid)
			return nil
		},
	}
	adminFlags(cmd)
	return cmd
}
