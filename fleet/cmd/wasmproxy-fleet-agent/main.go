// Command wasmproxy-fleet-agent has the plugins of a node follow the NodePlugins of its cluster. It is a program of its own, and not part
// of wasmproxy-fleet: a cluster has one on each node, and what controller and registry need would make it larger by a third.
package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/fleet/agent"
	"github.com/wasmproxy/wasmproxy/fleet/flags"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/process"
)

func main() { process.Run(command()) }

const long = `Have the plugins of a node follow the NodePlugins of its cluster.

The agent fetches each plugin from its registry, tries it, and puts it into the plugin directory when
it is the node's turn. It reports what became of it in the node's PluginNode. It changes no file that
somebody has put there by hand. If the API server, the controller or the registry is away, the node
keeps what it has. If the node has a trust file, it fetches only what is signed as that file asks.`

func command() *cobra.Command {
	var o agent.Options
	var p process.Process
	cmd := &cobra.Command{
		Use:   "wasmproxy-fleet-agent",
		Short: "Have the plugins of a node follow the NodePlugins of its cluster",
		Long:  long,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Node == "" {
				return errors.New("--node is empty: give the name of the node, such as that of the field spec.nodeName of the agent's pod")
			}
			o.Metrics = metrics.NewAgent()
			if err := p.Start(cmd, o.Metrics.Handler(), metrics.Healthy); err != nil {
				return err
			}
			o.Log = p.Log
			a, err := agent.New(p.Client, o)
			if err != nil {
				return err
			}
			a.Run(cmd.Context())
			return nil
		},
	}
	p.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Node, "node", "", "name of the node; required")
	f.StringVar(&o.Namespace, "namespace", "wasmproxy", "namespace of the fleet's ControllerRevisions")
	f.StringVar(&o.PluginDir, "plugin-dir", "/etc/wasmproxy/plugins.d", "plugin directory of the proxy")
	f.StringVar(&o.Program, "wasmproxy", "/usr/bin/wasmproxy", "the program that tries plugins")
	f.StringVar(&o.Settings, "config", "/etc/wasmproxy/wasmproxy.yaml", "settings file of the proxy, for its limits of plugins; it may be missing")
	f.StringVar(&o.StatusSocket, "status-socket", "/run/wasmproxy/status/status.sock", "status socket of the proxy")
	f.DurationVar(&o.FetchJitter, "fetch-jitter", 5*time.Minute, "the longest random wait before an update is fetched, so that nodes do not ask the registry all at once")
	f.DurationVar(&o.Poll, "poll", 5*time.Second, "time between two looks at the proxy and the plugin directory")
	f.DurationVar(&o.ReportEvery, "report-every", 10*time.Second, "the least time between two writes of the node's PluginNode, and the longest random wait before one, so that nodes do not write all at once")
	f.StringVar(&o.Verifier, "verifier", "/usr/bin/wasmproxy-fleet-verify", "the program that verifies signatures")
	flags.Trust(cmd, &o.TrustFile)
	flags.Mirrors(cmd, &o.Registry)
	flags.Registry(cmd, &o.Registry)
	return cmd
}
