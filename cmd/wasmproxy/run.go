package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
)

// run executes one command line and returns the exit code. Errors go to stderr,
// one line each.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "wasmproxy",
		Short:         "A CRI proxy that node teams extend with WebAssembly plugins",
		SilenceErrors: true, // printed below, once
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(), validateCommand(), pluginCommand(), koordCommand(), versionCommand(), demoCommand(), compileCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "wasmproxy: %v\n", err)
		if own := (coded{}); errors.As(err, &own) {
			return own.code
		}
		return exitFailure
	}
	return exitOK
}
