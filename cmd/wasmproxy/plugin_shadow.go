package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

func shadowCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "shadow ID",
		Short: "Show what the shadow of a plugin would have done otherwise",
		Long: `The shadow is the version that the key shadow of the plugin's JSON names. It is called with the same
events as the plugin, and changes nothing. The last 100 calls are shown in which it wanted something
else, failed or would have refused the call, and below them how many calls had which outcome since
the shadow was loaded. Values of environment variables and other secrets are (hidden).
The proxy is asked on the admin socket.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := adminClient(cmd)
			if err != nil {
				return err
			}
			r, err := client.Shadow(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("asking for the shadow of plugin %s: %w", printable(args[0]), err)
			}
			if format == "json" {
				return encode(cmd.OutOrStdout(), r)
			}
			out := cmd.OutOrStdout()
			for i := range r.Calls {
				c := &r.Calls[i]
				fmt.Fprintf(out, "%s %s of %s: %s\n", c.Time.UTC().Format(time.RFC3339), printable(c.Hook), printable(c.Object), c.Outcome)
				if c.Error != "" {
					fmt.Fprintf(out, "  %s\n", printable(c.Error))
				}
				if err := printChanged(out, c.Rows); err != nil {
					return err
				}
				if c.More > 0 {
					fmt.Fprintf(out, "  and %d more\n", c.More)
				}
				fmt.Fprintln(out)
			}
			_, err = fmt.Fprintf(out, "calls of the shadow: %d same, %d different, %d failed, %d refused\n", r.Outcomes[observe.ShadowSame],
				r.Outcomes[observe.ShadowDifferent], r.Outcomes[observe.ShadowFailed], r.Outcomes[observe.ShadowRefused])
			return err
		},
	}
	adminFlags(cmd)
	outputFlag(cmd, &format)
	return cmd
}
