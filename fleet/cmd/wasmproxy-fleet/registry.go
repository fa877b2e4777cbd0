package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

func pushCommand() *cobra.Command {
	var c oci.Client
	cmd := &cobra.Command{
		Use:   "push REFERENCE FILE.wasm",
		Short: "Bring a module to a registry, and print the reference by digest for a NodePlugin",
		Long: `Bring a module to a registry, as an artifact of CNCF's layout for WebAssembly, and print its reference by
digest, which is what spec.artifact of a NodePlugin takes. REFERENCE is registry/repository, with or
without a tag. The same module always has the same digest.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			module, err := regular.Read(args[1], abi.MaxModule, nil)
			if err != nil {
				return fmt.Errorf("reading the module %s: %w", args[1], err)
			}
			reference, err := c.Push(cmd.Context(), args[0], module)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), reference)
			return nil
		},
	}
	registryFlags(cmd, &c)
	return cmd
}

func pullCommand() *cobra.Command {
	var c oci.Client
	cmd := &cobra.Command{
		Use:   "pull REFERENCE FILE.wasm",
		Short: "Bring the module of a reference by digest into a file",
		Long: `Bring the module of a reference by digest into a file, as an agent does: it is checked against the
digest, and is at most 8 MiB large.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			module, err := c.Pull(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return os.WriteFile(args[1], module, 0o644)
		},
	}
	registryFlags(cmd, &c)
	return cmd
}
