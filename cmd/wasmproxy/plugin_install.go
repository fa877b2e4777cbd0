package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// installHelp is the long help of plugin install.
const installHelp = `Put a plugin into the plugin directory: one that comes with this program, or a file.
Without an argument those that come with the program are listed.

An argument that ends in .wasm or has a / in it is a FILE. A plugin that serve would not
load is refused with the reason; of one that it would, the lines of wasmproxy validate are shown.
The JSON file of that name in the plugin directory counts for that, with its configuration, and
stays as it is: write it first.

The file takes the place of an older one at once, never half written. The directory must be one
that the proxy trusts: root's or yours, and writable by nobody else.

Then the command waits until the running proxy has loaded the plugin, and shows its state. The exit
code is 6 if it cannot, or the time is over. With --plugin-dir it waits only if the settings
of the node name that directory, too.`

func installCommand() *cobra.Command {
	var as string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "install [NAME|FILE]",
		Short: "Put a plugin into the plugin directory: one that comes with this program, or a file",
		Long:  installHelp,
		Example: `  wasmproxy plugin install
  wasmproxy plugin install qos
  wasmproxy plugin install qos --as 10-qos --plugin-dir ./plugins.d
  wasmproxy plugin install ./cpu-boost.wasm --as 10-cpu-boost`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, p := range plugins.All() {
					in, err := wasm.Inspect(cmd.Context(), p.Module, wasm.PluginOptions{})
					if err != nil {
						return fmt.Errorf("inspecting %s: %w", p.Name, err)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, in.Manifest.Version, in.Manifest.Description)
				}
				return w.Flush()
			}
			module, names := bundled(args[0])
			name := "50-" + args[0]
			switch {
			case strings.HasSuffix(args[0], ".wasm") || strings.ContainsRune(args[0], filepath.Separator): // a file
				if name = stem(args[0]); !numbered.MatchString(name) {
					name = "50-" + name
				}
				var err error
				if module, err = readModule(args[0]); errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf("%w; name a .wasm file that is there, or a bundled plugin: %s", err, strings.Join(names, ", "))
				}
				if err != nil {
					return err
				}
			case module == nil:
				return wrongUsage("unknown plugin %q; the bundled plugins are %s; name a file by its path, such as ./%s.wasm",
					args[0], strings.Join(names, ", "), plugin.Name(args[0]))
			}
			if as = strings.TrimSuffix(as, ".wasm"); as != "" {
				name = as
			}
			if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
				return wrongUsage("--as: %q is not the name of a file", name)
			}
			return installAndAwait(cmd, module, name, wait)
		},
	}
	adminFlags(cmd, "plugin-dir", "status-socket")
	cmd.Flags().StringVar(&as, "as", "", "name of the file, by which plugins are ordered (default: 50-NAME; a FILE that begins with a number keeps its name)")
	waitFlag(cmd, &wait, followTime, "has loaded the plugin")
	return cmd
}

// installAndAwait installs a module into the plugin directory, and waits for a proxy that reads that one.
func installAndAwait(cmd *cobra.Command, module []byte, name string, wait time.Duration) error {
	dir := ""
	if f := cmd.Flags().Lookup("plugin-dir"); f.Changed { // the settings are to say which directory the proxy reads
		dir, f.Changed = f.Value.String(), false
	}
	c, wrong := adminSettings(cmd, false)
	switch {
	case dir == "" && wrong != nil:
		return fmt.Errorf("finding the plugin directory: %w; correct the settings, or give --plugin-dir", wrong)
	case dir == "":
		dir = c.PluginDir
	}
	if err := install(cmd, cmp.Or(c, config.Default()), module, filepath.Join(dir, name+".wasm")); err != nil {
		return err
	}
	if wait == 0 || wrong != nil {
		return nil
	}
	installed, err := os.Stat(dir)
	read, failed := os.Stat(c.PluginDir)
	if errors.Join(err, failed) != nil || !os.SameFile(installed, read) { // it is not the proxy's
		return nil
	}
	return following{c, wait, false}.await(cmd, name)
}

// numbered is how the names of files in the plugin directory begin.
var numbered = regexp.MustCompile(`^[0-9]+-`)

// bundled returns the module of a bundled plugin, which is nil for an unknown name, and the names of all.
func bundled(name string) (module []byte, names []string) {
	for _, p := range plugins.All() {
		if p.Name == name {
			module = p.Module
		}
		names = append(names, p.Name)
	}
	return module, names
}

// install writes the module to path, if the proxy would load it from there.
func install(cmd *cobra.Command, limits *config.Config, module []byte, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	beside := strings.TrimSuffix(path, ".wasm") + ".json"
	for _, trusted := range []string{filepath.Dir(path), beside} {
		if err := registry.CheckTrust(trusted); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the proxy would not load it: %w", err)
		}
	}
	description, err := registry.Beside(path)
	if err == nil {
		err = pluginFile{path, module, description}.checkDigest()
	}
	if err != nil {
		return fmt.Errorf("the proxy would not load it: %w", err)
	}
	dir, err := os.MkdirTemp("", "wasmproxy-install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	settings, missing := regular.Read(beside, maxPluginJSON, nil)
	if settings != nil { // they may switch it off, which does not count here
		if settings, err = delivery.SetKey(settings, "enabled", true); err == nil {
			err = os.WriteFile(filepath.Join(dir, stem(path)+".json"), settings, 0o600)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), module, 0o600)
	}
	if err == nil {
		err = tryPlugins(cmd, limits, dir, filepath.Join(dir, ".code"))
	}
	if err != nil {
		in, inspected := wasm.Inspect(cmd.Context(), module, wasm.PluginOptions{})
		fine := inspected == nil && len(in.Problems) == 0
		if fine && errors.Is(missing, fs.ErrNotExist) { // a configuration may be all that it lacks
			return fmt.Errorf("the proxy would not load it: %w; write its configuration to %s before you install it", err, plugin.Name(beside))
		}
		return fmt.Errorf("the proxy would not load it: %w", err)
	}
	if err := regular.Replace(path, module, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), plugin.Name(path))
	return nil
}
