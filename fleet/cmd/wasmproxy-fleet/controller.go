package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/wasmproxy/wasmproxy/fleet/controller"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/process"
)

const controllerLong = `Have new revisions of plugins come to the nodes of a cluster in steps.

Of several controllers one works, by a Lease. It says which nodes are to have a revision, and
goes back if too many of them fail. Without a controller nothing moves: nodes keep what they have.`

func controllerCommand() *cobra.Command {
	var o controller.Options
	var p process.Process
	var identity, agents string
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Have new revisions of plugins come to the nodes of a cluster in steps",
		Long:  controllerLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Interval <= 0 {
				return fmt.Errorf("--interval: must be greater than 0, got %v", o.Interval)
			}
			o.Metrics = metrics.NewController()
			health := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
			if err := p.Start(cmd, o.Metrics.Handler(), health.Check); err != nil {
				return err
			}
			o.Log = p.Log
			var err error
			if o.Agents, err = labels.Parse(agents); err != nil {
				return fmt.Errorf("--agents: %q is not a label selector: %w", agents, err)
			}
			err = controller.Lead(cmd.Context(), p.Config, o.Namespace, identity, health, func(ctx context.Context) {
				controller.New(p.Client, o).Run(ctx)
			})
			if err == nil && cmd.Context().Err() == nil {
				err = errors.New("it could not renew the Lease, or another controller has it, so it ends: it is started again to wait for its turn")
			}
			return err
		},
	}
	name, _ := os.Hostname() // of the pod; without one the flag is required
	p.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", "wasmproxy", "namespace of the Lease and of the ControllerRevisions")
	f.StringVar(&identity, "identity", name, "name of this controller, which no other one has")
	f.StringVar(&agents, "agents", "wasmproxy.io/node=true", "label selector of the nodes with an agent, as the DaemonSet has it; others do not count")
	f.DurationVar(&o.Interval, "interval", 30*time.Second, "the least time between two changes of a NodePlugin's status, of which all nodes learn")
	return cmd
}
