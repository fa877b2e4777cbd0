package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/handover"
)

// run executes one command line and returns the exit code. Errors go to stderr,
// one line each.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		printError(stderr, err)
		failHandover(err)
		if own := (coded{}); errors.As(err, &own) {
			return own.code
		}
		return exitFailure
	}
	return exitOK
}

// failHandover tells the process that has started this one to take its place, if there is one, why
// that is not possible: what is wrong with a flag or a setting. Of later errors package daemon tells.
func failHandover(err error) {
	if from, _ := handover.FromEnvironment(); from != nil {
		_ = from.Fail(err)
		_ = from.Close()
	}
}

// newRoot returns the program's command with all others beneath it.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "wasmproxy",
		Short: "A CRI proxy that node teams extend with WebAssembly plugins",
		Long: `A CRI proxy that node teams extend with WebAssembly plugins.

Exit codes of all commands: 0 success; 1 failure; 2 wrong usage, which is a command, an
argument, a flag or a setting; 3 the plugin refused the call (plugin run); 4 doctor has found
warnings, 5 errors.`,
		Args:          noSuchCommand,
		RunE:          showHelp,
		SilenceErrors: true, // printed below, once
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(), validateCommand(), pluginCommand(), koordCommand(), versionCommand(), demoCommand(), bypassCommand(), reloadCommand(), statusCommand(), explainCommand(), doctorCommand(), hostCommand(), compileCommand())
	root.SetHelpCommand(helpCommand())
	strict(root)
	return root
}
