package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func installCommand() *cobra.Command {
	var dir, as string
	cmd := &cobra.Command{
		Use:   "install [NAME]",
		Short: "Put a plugin that comes with this program into the plugin directory, or list them",
		Long: `Put a plugin that comes with this program into the plugin directory, or list them.

A proxy that runs takes it up within a second. The file takes the place of an older one
at once, never half written. The directory must be one that the proxy trusts: root's or
yours, and writable by nobody else.`,
		Example: `  wasmproxy plugin install
  wasmproxy plugin install qos
  wasmproxy plugin install qos --as 10-qos --dir ./plugins.d`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listStock(cmd)
			}
			return install(cmd, args[0], dir, as)
		},
	}
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(settings)
	cmd.Flags().StringVar(&dir, "dir", settings.Lookup("plugin-dir").DefValue, "plugin directory")
	cmd.Flags().StringVar(&as, "as", "", "name of the file without .wasm, by which plugins are ordered (default: 50-NAME)")
	return cmd
}

func listStock(cmd *cobra.Command) error {
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

func install(cmd *cobra.Command, name, dir, as string) error {
	all := plugins.All()
	i := slices.IndexFunc(all, func(p plugins.Plugin) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		return wrongUsage("no plugin %q comes with this program; there are %s", name, strings.Join(names, ", "))
	}
	if as == "" {
		as = "50-" + name
	}
	if as != filepath.Base(as) || strings.HasPrefix(as, ".") {
		return wrongUsage("--as: %q is not the name of a file", as)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := registry.CheckDir(dir); err != nil {
		return fmt.Errorf("the proxy would not load it: %w", err)
	}
	path := filepath.Join(dir, as+".wasm")
	if err := writeFile(path, all[i].Module, 0o644); err != nil {
		return err
	}
	return advise(cmd, path)
}

// advise says where the plugin is, and what the operator must still do.
func advise(cmd *cobra.Command, path string) error {
	p, err := readPlugin(path)
	if err != nil {
		return err
	}
	in, err := wasm.Inspect(cmd.Context(), p.module, wasm.PluginOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", path)
	if c := p.capabilities(in); len(c.Missing) > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "it needs %s: add  %s  to %s\n", strings.Join(c.Missing, ", "), c.Add, strings.TrimSuffix(path, ".wasm")+".json")
	}
	return nil
}

// writeFile replaces a file at once: whoever reads it finds the old content or the
// new one.
func writeFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".wasmproxy-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
