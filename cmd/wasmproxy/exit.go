package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
)

// Exit codes, the same for all commands.
const (
	exitOK       = 0
	exitFailure  = 1 // what was asked for could not be done
	exitUsage    = 2 // a command, an argument, a flag or a setting is wrong
	exitRejected = 3 // plugin run: the plugin refused the call, as it may
	// doctor: the worst of what it has found
	exitDoctorWarning = 4
	exitDoctorError   = 5

	exitNotActive = 6 // the files of plugins are in place, and the proxy does not have them active

	exitByHand = 7 // host uninstall: nothing was changed, and the operator has to change kubelet's files

	exitRefused = delivery.ExitRefused

	exitFatal = 255 // of klog.Fatal, by which koord-runtime-proxy ended
)

// coded is an error with an exit code other than exitFailure.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// wrongUsage is the error of a command line or setting that is wrong.
func wrongUsage(format string, args ...any) error {
	return coded{fmt.Errorf(format, args...), exitUsage}
}

// strict makes errors in arguments and flags wrong usage, for a command and all beneath it.
func strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2 // letters
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return wrongUsage("%w; see %s --help", err, cmd.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			err := check(cmd, given)
			switch {
			case err == nil:
				return nil
			case cmd.HasSubCommands():
				return wrongUsage("%w; see %s --help", err, cmd.CommandPath())
			}
			return wrongUsage("%w; usage: %s", err, cmd.UseLine())
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// noSuchCommand refuses what is left where a subcommand's name should be, for which cobra
// prints the help and succeeds.
func noSuchCommand(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	like := strings.Join(cmd.SuggestionsFor(given[0]), ", ")
	if like != "" {
		like = fmt.Sprintf(" (did you mean %s?)", like)
	}
	return fmt.Errorf("unknown command %q for %q%s", given[0], cmd.CommandPath(), like)
}

// noArguments is cobra.NoArgs, which calls an argument a command.
func noArguments(_ *cobra.Command, given []string) error {
	if len(given) > 0 {
		return fmt.Errorf("unexpected argument %q", given[0])
	}
	return nil
}

// showHelp is what a command does that has subcommands only.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// helpCommand takes the place of cobra's, which succeeds where there is no such command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				return about.Help()
			}
			return wrongUsage("unknown command %q; see %s --help", strings.Join(args, " "), cmd.Root().Name())
		},
	}
}
