package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func retryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Have a version of a plugin loaded once more that failed its probation",
		Long: `A plugin that was delivered with --probation and failed is not loaded again, and the version before
runs: plugin list says why. This command gives the version another probation, of the same length.
The proxy is asked on the admin socket.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := adminClient(cmd)
			if err != nil {
				return err
			}
			if err := client.Retry(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("trying plugin %s once more: %w", printable(args[0]), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is loaded once more: wasmproxy plugin list shows how it does\n", printable(args[0]))
			return nil
		},
	}
	adminFlags(cmd)
	return cmd
}
