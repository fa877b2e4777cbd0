package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// compileCommand is for serve and validate, which start the program again to
// compile a plugin.
func compileCommand() *cobra.Command {
	return &cobra.Command{
		Use:    wasm.CompilerCommand + " JOB",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return wasm.RunCompiler(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
