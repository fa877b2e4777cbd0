// Command wasmproxy stands between kubelet and the container runtime, and lets
// plugins change what kubelet asks for. The program is flags in and exit code
// out; what it does is in the packages under runtime.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/host"
)

func main() {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	os.Exit(run(ctx, newRoot(host.SettingsFile), commandLine(os.Args), os.Stdout, os.Stderr))
}

// outliveReader has the process go on without whoever reads its stdout or stderr, such as a session of ssh that breaks off.
// Otherwise the next write would end it, also where its parent has set that the signal is ignored.
func outliveReader() { signal.Ignore(syscall.SIGPIPE) }

// run executes one command line of root and returns the exit code. Errors go to stderr,
// one line each.
func run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		printError(stderr, err)
		if own := (coded{}); errors.As(err, &own) {
			return own.code
		}
		return exitFailure
	}
	return exitOK
}

// newRoot returns the program's command with all others beneath it. settings is the settings file
// of the node's proxy, which need not exist; tests have none.
func newRoot(settings string) *cobra.Command {
	root := &cobra.Command{
		Use:   "wasmproxy",
		Short: "A CRI proxy that node teams extend with WebAssembly plugins",
		Long: `Exit codes of all commands: 0 success; 1 failure; 2 wrong usage, which is a command, an
argument, a flag or a setting; 3 the plugin refused the call (plugin run); 4 doctor has found
warnings, 5 errors; 6 the proxy does not have a plugin as its files say (plugin); 7 kubelet's files
are to be changed by hand (host uninstall); 8 the proxy would not load a plugin (plugin deliver).`,
		Args:          noSuchCommand,
		RunE:          showHelp,
		SilenceErrors: true, // printed below, once
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(), koordCommand(), versionCommand(), demoCommand(), hostCommand(), abiCommand(), compileCommand())
	root.AddCommand(ofNode(settings,
		validateCommand(), pluginCommand(), bypassCommand(), statusCommand(), explainCommand(), doctorCommand(),
	)...)
	root.SetHelpCommand(helpCommand())
	strict(root)
	lead(root)
	return root
}

// lead begins the long help of a command, and of all beneath it, with the short one.
func lead(cmd *cobra.Command) {
	if cmd.Long != "" {
		cmd.Long = cmd.Short + ".\n\n" + cmd.Long
	}
	for _, sub := range cmd.Commands() {
		lead(sub)
	}
}
