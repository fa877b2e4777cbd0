package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/fleet/flags"
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
	flags.Registry(cmd, &c)
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
	flags.Registry(cmd, &c)
	return cmd
}

func copyCommand() *cobra.Command {
	var c oci.Client
	cmd := &cobra.Command{
		Use:   "copy SOURCE DESTINATION",
		Short: "Copy an artifact with its signatures, from a registry or a directory to another one",
		Long: `Copy an artifact, with all that refers to it, such as its signatures, and print the reference by digest.
A place is a reference, or oci:DIRECTORY for a directory in the layout of OCI images, which carries
artifacts to where no registry can be reached. SOURCE names a digest or a tag. The digest stays the same.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			reference, err := c.Copy(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), reference)
			return nil
		},
	}
	flags.Registry(cmd, &c)
	return cmd
}

// verifyCommand becomes the program that verifies signatures. What that needs would make each agent larger by a half.
func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "verify REFERENCE",
		Short:              "Say who has signed an artifact, by a node's trust file",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			program := filepath.Join(filepath.Dir(self), "wasmproxy-fleet-verify")
			err = syscall.Exec(program, append([]string{program}, args...), os.Environ())
			return fmt.Errorf("running %s: %w: it belongs beside wasmproxy-fleet", program, err)
		},
	}
}
