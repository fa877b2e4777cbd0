package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// enableTime is how long enable and disable wait for the proxy: a module of standard Go takes some
// ten seconds to compile.
const enableTime = 30 * time.Second

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
		Long: short + `.

It sets the key "enabled" of the JSON file beside the plugin, or makes that file; other keys,
the owner and the mode stay. Then it waits for at most 30 s until the running proxy has followed, and
shows the plugin's state. The values of a plugin that is disabled are undone.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := adminSettings(cmd, "text")
			if err != nil {
				return err
			}
			if err := setEnabled(c, args[0], on); err != nil {
				return err
			}
			return awaitEnabled(cmd, c, args[0], on)
		},
	}
	adminFlags(cmd, "plugin-dir", "hook-dir")
	return cmd
}

// setEnabled writes the key into the JSON file of a plugin.
func setEnabled(c *config.Config, id string, on bool) error {
	if id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return wrongUsage("%q is not the id of a plugin, which is the name of its file without .wasm or .json", id)
	}
	for _, dir := range []string{c.PluginDir, c.HookDir} {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, id)
		_, noModule := os.Lstat(path + ".wasm")
		text, err := regular.Read(path+".json", maxPluginJSON, nil)
		switch {
		case errors.Is(err, fs.ErrNotExist) && noModule != nil:
			continue
		case errors.Is(err, fs.ErrNotExist):
			text = []byte("{}\n")
		case err != nil:
			return fmt.Errorf("reading %s: %w", plugin.Name(path+".json"), err)
		case noModule != nil && dir == c.HookDir:
			return fmt.Errorf("%s registers a hook server in hook-dir, which has no key \"enabled\": move the file away", plugin.Name(path+".json"))
		}
		if text, err = withEnabled(text, on); err != nil {
			return fmt.Errorf("%s: %w; correct the file first", plugin.Name(path+".json"), err)
		}
		return replaceFile(path+".json", text)
	}
	return fmt.Errorf("there is no plugin %s: neither %s nor hook-dir has %s or %s; wasmproxy plugin list shows the ids",
		plugin.Name(id), plugin.Name(c.PluginDir), plugin.Name(id+".wasm"), plugin.Name(id+".json"))
}

// withEnabled sets the key in the text of an object, of which all else stays as it is written.
func withEnabled(text []byte, on bool) ([]byte, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errors.New("it is not a JSON object")
	}
	value := []byte(strconv.FormatBool(on))
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	begin := d.InputOffset()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var old json.RawMessage
		if err := d.Decode(&old); err != nil {
			return nil, err
		}
		if end := d.InputOffset(); key == "enabled" {
			return slices.Concat(text[:end-int64(len(old))], value, text[end:]), nil
		}
	}
	key := `"enabled": ` + string(value)
	if len(whole) > 0 {
		key += ", "
	}
	return slices.Concat(text[:begin], []byte(key), bytes.TrimLeft(text[begin:], " ")), nil
}

// replaceFile replaces a file at once, and keeps its owner and mode.
func replaceFile(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFile(path, text, 0o644)
	}
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), ".wasmproxy-enable-"+stem(path)) // no name that is read as a plugin
	if err := writeFile(temporary, text, info.Mode().Perm()); err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		err = os.Chown(temporary, int(st.Uid), int(st.Gid))
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// awaitEnabled waits until the proxy has followed, and shows the plugin.
func awaitEnabled(cmd *cobra.Command, c *config.Config, id string, on bool) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), enableTime)
	defer cancel()
	for {
		all, silent, err := listPlugins(ctx, c)
		if err != nil {
			return fmt.Errorf("the file is written, but the proxy does not tell the plugin's state: %w", err)
		}
		one := slices.IndexFunc(all.Plugins, func(p status.Plugin) bool { return p.ID == id })
		switch {
		case silent != "":
			fmt.Fprintf(cmd.OutOrStdout(), "The file is written. No proxy answers (%s); one that is started follows it.\n", printable(silent))
			return nil
		case one >= 0 && settled(&all.Plugins[one], on):
			all.Plugins = all.Plugins[one : one+1]
			if err := printPlugins(cmd.OutOrStdout(), all, time.Now()); err != nil || !on || all.Plugins[0].State == status.Active || all.Plugins[0].State == status.Bypassed {
				return err
			}
			return fmt.Errorf("plugin %s is enabled, and cannot be loaded", plugin.Name(id))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the file is written, but the proxy has not followed within %v: see wasmproxy plugin list", enableTime)
		}
	}
}

// settled reports whether the plugin is, or cannot be, as the file wants it.
func settled(p *status.Plugin, on bool) bool {
	if !on {
		return p.State == status.Disabled
	}
	return p.State == status.Active || p.State == status.Bypassed || p.State != status.Disabled && p.Pending != nil && p.Pending.State == "failed"
}
