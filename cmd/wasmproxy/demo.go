package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/cmd/wasmproxy/demo"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo [--hold DIR [POD.yaml]]",
		Short: "Show the proxy and two plugins at work on a runtime in memory; needs neither root nor a node",
		Long: `With --hold the proxy stays up after the show, until Ctrl-C, for plugins of your
own: copy them into DIR/plugins.d, in the form 10-NAME.wasm. It runs the Pod of
POD.yaml, or one of its own that is in DIR/pod.yaml, and prints what plugins make
of it. The pod goes on while plugins come and go, and is run anew when its file is
saved. Its cgroup files are in DIR/cgroup. Each container uses 0.7 CPUs, as far as
its cpu.max lets it; cpu.stat and cpu.pressure show that. A cpu.pressure that you
write, such as the node's, DIR/cgroup/cpu.pressure, stays as you wrote it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if o.Pod = args[0]; o.Hold == "" {
					return wrongUsage("running a Pod needs --hold DIR")
				}
			}
			out := cmd.OutOrStdout()
			o.Colour = isTerminal(out)
			return demo.Run(cmd.Context(), out, o)
		},
	}
	cmd.Flags().StringVar(&o.Hold, "hold", "", "stay up after the show, in this directory, which is made and in the end removed")
	return cmd
}
