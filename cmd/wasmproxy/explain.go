package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

const explainLong = `It asks the running proxy. For each CRI field that the container has, and each cgroup file
that a plugin has asked for, a line shows:

  KUBELET  what kubelet wants; of a file, what it held before its first write
  PLUGINS  what each plugin wants, with the hook in which it asked and since when; the first
           one holds
  SENT     what the container runtime got last (fields)
  KERNEL   what the kernel holds now
  OWNER    whose value holds; unknown if a record of the pod was ignored

- is a value that is not known or does not apply. Below a value that is not as it is meant to
be stands the reason: waiting (not written yet), drift (the kernel holds another value), fight
(something else overwrites it again and again), failed (the kernel refused it), undoing (its
plugin is gone, and kubelet's value is yet to come back), or stays (its plugin is gone, but
CRI cannot clear it before the container restarts).

The socket is found as serve finds it: by --admin-socket, WASMPROXY_ADMIN_SOCKET or the file
of --config. It belongs to the proxy's user, usually root.`

func explainCommand() *cobra.Command {
	var format string
	var diff bool
	cmd := &cobra.Command{
		Use:   "explain " + explain.Form,
		Short: "Show who has set which resource and cgroup file of a pod that runs",
		Long:  explainLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := explain.Check(args[0]); err != nil {
				return coded{err, exitUsage}
			}
			client, err := adminClient(cmd)
			if err != nil {
				return err
			}
			report, err := client.Explain(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if diff {
				report.Diff()
			}
			if format == "json" {
				return encode(cmd.OutOrStdout(), report)
			}
			return printReport(cmd.OutOrStdout(), report, diff)
		},
	}
	adminFlags(cmd)
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&diff, "diff", false, "show only what differs from kubelet's values, or is not as it is meant to be")
	return cmd
}

// adminFlags gives a command that asks the proxy the flags of serve, and hides those that do
// not find the socket, but for others that the command reads.
func adminFlags(cmd *cobra.Command, others ...string) {
	config.Flags(cmd.Flags())
	shown := append(others, config.FileFlag, "admin-socket")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}

// adminClient is that of the proxy that a command with adminFlags names.
func adminClient(cmd *cobra.Command) (client admin.Client, err error) {
	c, err := adminSettings(cmd, true)
	if err != nil {
		return client, err
	}
	if c.AdminSocket == "" {
		return client, wrongUsage("admin-socket is empty: name the proxy's socket with --admin-socket")
	}
	return admin.Client{Socket: config.Path(c.AdminSocket)}, nil
}

// adminSettings are those of a command with adminFlags, whatever is wrong with the settings file.
// If the command line names one of the proxy's two sockets, the other may be another proxy's, and is left out.
func adminSettings(cmd *cobra.Command, mayGuess bool) (*config.Config, error) {
	for _, name := range []string{"plugin-dir", "hook-dir"} { // a person names them from where they are
		f := cmd.Flags().Lookup(name)
		if !f.Changed || f.Value.String() == "" {
			continue
		}
		dir, err := filepath.Abs(f.Value.String())
		if err = errors.Join(err, f.Value.Set(dir)); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", name, f.Value, err)
		}
	}
	c, err := knownSettings(cmd, mayGuess)
	if err != nil {
		return nil, err
	}
	switch admin, status := cmd.Flags().Changed("admin-socket"), cmd.Flags().Changed("status-socket"); {
	case admin && !status:
		c.StatusSocket = ""
	case status && !admin:
		c.AdminSocket = ""
	}
	return c, nil
}
