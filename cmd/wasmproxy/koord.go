package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// koordName is the program that this one takes the place of.
const koordName = "koord-runtime-proxy"

// commandLine returns the arguments of a call. A program of the old name is the
// koord command, unless another command is asked for: the old one has none.
func commandLine(args []string) []string {
	rest := args[1:]
	if filepath.Base(args[0]) == koordName && (len(rest) == 0 || strings.HasPrefix(rest[0], "-")) {
		return append([]string{"koord"}, rest...)
	}
	return rest
}

func koordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "koord",
		Short: "Serve as koord-runtime-proxy did, by its flags and defaults",
		Long: `A program file or link of the name koord-runtime-proxy is this command. The
settings of serve that koord-runtime-proxy has no flag for are flags here too.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := serve(cmd, func(f config.File) (*config.Config, error) { return config.LoadKoord(cmd.Flags(), f) })
			if errors.Is(err, config.ErrBackendMode) {
				return coded{err, exitFatal}
			}
			return err
		},
	}
	config.KoordFlags(cmd.Flags())
	return cmd
}
