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
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// maxPluginJSON is in bytes, as for the proxy.
const maxPluginJSON = 1 << 20

func enableCommand(on bool) *cobra.Command {
	name, short := "disable", "Switch a plugin off by its JSON file"
	if on {
		name, short = "enable", "Switch a plugin on again that disable has switched off"
	}
	cmd := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Long: `It sets the key "enabled" of the JSON file beside the plugin, or makes that file; other keys,
the owner and the mode stay. Then it waits for at most 30 s until the running proxy has followed, and
shows the plugin's state. The values of a plugin that is disabled are undone.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := adminSettings(cmd, false)
			if err != nil {
				return err
			}
			dir, err := dirOf(c, args[0])
			if err != nil {
				return err
			}
			err = delivery.Directory(dir).Edit(cmd.Context(), func() error {
				_, noModule := os.Lstat(filepath.Join(dir, args[0]+".wasm"))
				file := filepath.Join(dir, args[0]+".json")
				text, err := regular.Read(file, maxPluginJSON, nil)
				switch {
				case errors.Is(err, fs.ErrNotExist):
					text = []byte("{}\n")
				case err != nil:
					return fmt.Errorf("reading %s: %w", plugin.Name(file), err)
				case noModule != nil && dir == c.HookDir:
					return fmt.Errorf("%s registers a hook server in hook-dir, which has no key \"enabled\": move the file away", plugin.Name(file))
				}
				if text, err = delivery.SetKey(text, "enabled", on); err != nil {
					return fmt.Errorf("%s: %w; correct the file first", plugin.Name(file), err)
				}
				if target, err := filepath.EvalSymlinks(file); err == nil {
					file = target
				}
				return regular.Rewrite(file, text, 0o644)
			})
			if err != nil {
				return err
			}
			return following{c, followTime, false}.await(cmd, args[0])
		},
	}
	adminFlags(cmd, "plugin-dir", "hook-dir")
	return cmd
}

// dirOf returns the directory that has the files of a plugin.
func dirOf(c *config.Config, id string) (string, error) {
	if id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return "", wrongUsage("%q is not the id of a plugin, which is the name of its file without .wasm or .json", id)
	}
	for _, dir := range []string{c.PluginDir, c.HookDir} {
		_, noModule := os.Lstat(filepath.Join(dir, id+".wasm"))
		_, noJSON := os.Lstat(filepath.Join(dir, id+".json"))
		if dir != "" && (noModule == nil || noJSON == nil) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("there is no plugin %s: neither %s nor hook-dir has %s or %s; wasmproxy plugin list shows the ids",
		plugin.Name(id), plugin.Name(c.PluginDir), plugin.Name(id+".wasm"), plugin.Name(id+".json"))
}
