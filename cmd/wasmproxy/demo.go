package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/cmd/wasmproxy/demo"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the proxy and two plugins at work on a runtime in memory; needs neither root nor a node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			return demo.Run(cmd.Context(), out, isTerminal(out))
		},
	}
}
