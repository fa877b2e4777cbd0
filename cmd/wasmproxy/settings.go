package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// ofNode has commands, and all beneath them, read file unless --config names another one: they
// are about the proxy of the node, whose unit names that file.
func ofNode(file string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		if f := cmd.Flags().Lookup(config.FileFlag); f != nil {
			f.DefValue = file
			f.Usage += `. The default file need not exist; "" is no file`
		}
		ofNode(file, cmd.Commands()...)
	}
	return commands
}

// settingsFile is the file that a command of ofNode reads, below root. It is empty if there is
// no file to read.
func settingsFile(cmd *cobra.Command, root string) string {
	f := cmd.Flags().Lookup(config.FileFlag)
	if f.Changed || f.DefValue == "" {
		return f.Value.String()
	}
	file := filepath.Join(root, f.DefValue)
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return file
}

// loadSettings reads the settings of a command of ofNode.
func loadSettings(cmd *cobra.Command, root string) (*config.Config, error) {
	if err := cmd.Flags().Set(config.FileFlag, settingsFile(cmd, root)); err != nil {
		return nil, err
	}
	c, err := config.Load(cmd.Flags())
	if err != nil {
		return nil, coded{err, exitUsage}
	}
	return c, nil
}

// bypassSettings are those of a command that must work whatever is wrong with the settings file:
// then flags, variables and defaults serve, and the command says so.
func bypassSettings(cmd *cobra.Command) (*config.Config, error) {
	c, err := loadSettings(cmd, "/")
	if err == nil || cmd.Flags().Lookup(config.FileFlag).Value.String() == "" {
		return c, err
	}
	if err := cmd.Flags().Set(config.FileFlag, ""); err != nil {
		return nil, err
	}
	c, other := loadSettings(cmd, "/")
	if other != nil {
		return nil, other
	}
	printError(cmd.ErrOrStderr(), err)
	printError(cmd.ErrOrStderr(), fmt.Errorf("the settings cannot be read, so the command goes by admin-socket %s and bypass-file %s: if the proxy has others, name them with --admin-socket and --bypass-file",
		printable(c.AdminSocket), printable(c.BypassFile)))
	return c, nil
}
