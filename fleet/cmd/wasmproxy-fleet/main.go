// Command wasmproxy-fleet brings plugins to the nodes of a cluster: the agent of a node, the controller, and what brings a module to a
// registry. The proxy itself needs none of it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "wasmproxy-fleet:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "wasmproxy-fleet",
		Short:         "Bring plugins to the nodes of a cluster, in steps",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.AddCommand(agentCommand(), controllerCommand(), pushCommand(), pullCommand(), copyCommand(), verifyCommand())
	return cmd
}
