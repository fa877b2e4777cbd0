package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/fleet/controller"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
)

const controllerLong = `Have new revisions of plugins come to the nodes of a cluster in steps.

Of several controllers one works, by a Lease. It says which nodes are to have a revision, and
goes back if too many of them fail. Without a controller nothing moves: nodes keep what they have.`

func controllerCommand() *cobra.Command {
	var o controller.Options
	var kubeconfig, identity string
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Have new revisions of plugins come to the nodes of a cluster in steps",
		Long:  controllerLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := kube.Config(kubeconfig)
			if err != nil {
				return err
			}
			client, err := kube.New(config)
			if err != nil {
				return err
			}
			o.Log = logger()
			err = controller.Lead(cmd.Context(), config, o.Namespace, identity, func(ctx context.Context) {
				controller.New(client, o).Run(ctx)
			})
			if err == nil && cmd.Context().Err() == nil {
				err = errors.New("another controller has the Lease, so this one ends: it is started again to wait for its turn")
			}
			return err
		},
	}
	name, _ := os.Hostname() // of the pod; without one the flag is required
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server (default: as the pod's service account)")
	f.StringVar(&o.Namespace, "namespace", "wasmproxy", "namespace of the Lease and of the ControllerRevisions")
	f.StringVar(&identity, "identity", name, "name of this controller, which no other one has")
	f.DurationVar(&o.Interval, "interval", 30*time.Second, "the least time between two changes of a NodePlugin's status, of which all nodes learn")
	return cmd
}
