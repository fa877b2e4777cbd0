// Command wasmproxy-fleet brings plugins to the nodes of a cluster: the controller, and what brings a module to a registry. The agent of a
// node is wasmproxy-fleet-agent. The proxy itself needs none of it.
package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/fleet/process"
)

func main() { process.Run(command()) }

func command() *cobra.Command {
	cmd := &cobra.Command{Use: "wasmproxy-fleet", Short: "Bring plugins to the nodes of a cluster, in steps"}
	cmd.AddCommand(controllerCommand(), pushCommand(), pullCommand(), copyCommand(), verifyCommand())
	return cmd
}
