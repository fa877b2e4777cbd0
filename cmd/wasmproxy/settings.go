package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
)

// ofNode has commands, and all beneath them, read file unless --config names another one: they
// are about the proxy of the node, whose unit names that file. Where --config is a plugin's, it stays so.
func ofNode(file string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		if f := cmd.Flags().Lookup(config.FileFlag); f != nil && !strings.HasPrefix(f.Usage, pluginConfig) {
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

// lastGoodSettings are those that a start of the proxy takes if its file is wrong, of a host whose files are below root;
// nil if there are none, or they cannot be read.
func lastGoodSettings(cmd *cobra.Command, root string, wrong error) *config.Config {
	source := settings.New(func() config.File { return config.ReadFile(cmd.Flags()) },
		func(f config.File) (*config.Config, error) { return config.LoadFrom(cmd.Flags(), f) })
	c, err := source.FallBack(wrong, root)
	if err != nil {
		return nil
	}
	return c
}

// knownSettings are those of a command that must work whatever is wrong with the settings file: then the last good ones
// serve, or else flags, variables and defaults, and the command says so. A command that changes files needs to know where
// they are, and must not guess: by the last good settings or not at all.
func knownSettings(cmd *cobra.Command, mayGuess bool) (*config.Config, error) {
	c, err := loadSettings(cmd, "/")
	if err == nil || cmd.Flags().Lookup(config.FileFlag).Value.String() == "" {
		return c, err
	}
	which := "the last good settings"
	c = lastGoodSettings(cmd, "/", err)
	if c == nil && !mayGuess {
		return nil, fmt.Errorf("%w; there are no last good settings either", err)
	}
	if c == nil {
		which = "flags, variables and defaults"
		var other error
		if c, other = config.LoadFrom(cmd.Flags(), config.File{}); other != nil {
			return nil, err
		}
	}
	printError(cmd.ErrOrStderr(), err)
	printError(cmd.ErrOrStderr(), fmt.Errorf("the settings cannot be read, so the command goes by %s: admin-socket %s, status-socket %s, bypass-file %s, plugin-dir %s; if the proxy has others, name them by flags of these names",
		which, printable(c.AdminSocket), printable(c.StatusSocket), printable(c.BypassFile), printable(c.PluginDir)))
	return c, nil
}
