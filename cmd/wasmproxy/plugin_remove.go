package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const removeLong = `It removes ID.wasm and ID.json, and the module that ID.json names unless another plugin names it. A
plugin that a delivery has brought is refused: deliver that owner's plugins without it. With --force
it is removed all the same, and its owner's next delivery brings it again.

Then the command waits until the running proxy has unloaded the plugins. The proxy undoes the values
that they have set in cgroup files and resources of running containers. Annotations, mounts and what
else nothing can undo stay as long as the container. The exit code is 6 if the proxy still has one
of the plugins when the time is over.`

func removeCommand() *cobra.Command {
	var force bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove plugins that plugin install or a person has put into the plugin directory",
		Long:  removeLong,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := adminSettings(cmd, false)
			if err != nil {
				return err
			}
			for _, id := range ids {
				dir, err := dirOf(c, id)
				if err != nil {
					return err
				}
				if dir == c.HookDir {
					return fmt.Errorf("%[1]s is of hook-dir, %[2]s, whose files this command leaves alone: remove those of %[1]s there", plugin.Name(id), plugin.Name(dir))
				}
			}
			removed, err := delivery.Directory(c.PluginDir).Remove(cmd.Context(), ids, force)
			for _, path := range removed {
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", plugin.Name(path))
			}
			if err != nil {
				return fmt.Errorf("removing plugins: %w", err)
			}
			if wait == 0 {
				return nil
			}
			return following{c, wait, false}.await(cmd, ids...)
		},
	}
	adminFlags(cmd, "plugin-dir", "status-socket")
	cmd.Flags().BoolVar(&force, "force", false, "remove a plugin that a delivery has brought, too")
	waitFlag(cmd, &wait, followTime, "has unloaded the plugins")
	return cmd
}

// waitFlag is how long a command that has changed files of plugins waits for the proxy.
func waitFlag(cmd *cobra.Command, wait *time.Duration, standard time.Duration, until string) {
	cmd.Flags().DurationVar(wait, "wait", standard, "how long to wait until the running proxy "+until+"; 0: do not wait")
	cmd.PreRunE = func(*cobra.Command, []string) error { // before a file changes
		if *wait < 0 {
			return wrongUsage("--wait: must be a time such as 30s, or 0 for none, got %v", *wait)
		}
		return nil
	}
}
