package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// deliveredFile is in the plugin directory, where its first dot hides it from the proxy.
const deliveredFile = ".delivered.json"

func deliverCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "deliver DIR",
		Short: "Make a node's plugins those of a directory, such as a mounted ConfigMap",
		Long: `Make a node's plugins those of a directory, such as a mounted ConfigMap.

It copies each .wasm and .json file of DIR to the plugin directory, and removes those that an
earlier delivery has brought and that DIR does not have. Others stay. If the proxy would not
load one of the plugins, the command says why and changes nothing.

A delivered file that was edited on the node stays as it is until DIR has a new content for
it. So a plugin that was disabled on a node stays disabled when its DaemonSet's pod restarts.
A JSON file that the node has beside a delivered module counts as such an edit. It stays until
DIR has one, and goes with the module.
Any other file of the same name that no delivery has brought is an error.

Plugins are loaded with the limits of the settings in --config, which also say where the plugin
directory is. A file that is not there is
no error: the defaults are then those of the proxy, too.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := limitsIn(settingsFile(cmd, "/"))
			if err != nil {
				return fmt.Errorf("delivering plugins: the proxy's settings cannot be read, so nothing was changed: %w", err)
			}
			d, err := readDelivery(args[0], cmp.Or(dir, c.PluginDir))
			if err != nil {
				return fmt.Errorf("delivering plugins: %w", err)
			}
			if err := d.check(cmd, c); err != nil {
				return fmt.Errorf("delivering plugins: the proxy would not load all of them, so nothing was changed: %w", err)
			}
			return d.apply(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "plugin directory (default: plugin-dir of the settings)")
	cmd.Flags().String(config.FileFlag, "", "YAML file with the proxy's settings, for its plugin-dir and limits of plugins")
	return cmd
}

// limitsIn returns default settings with the plugin directory and the limits of plugins from a file of
// the proxy's settings, if there is one.
func limitsIn(file string) (*config.Config, error) {
	c := config.Default()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) { // as of ""
		return c, nil
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	if err := flags.Set(config.FileFlag, file); err != nil {
		return nil, err
	}
	of, err := config.Load(flags)
	if err != nil {
		return nil, err
	}
	c.PluginDir, c.GuestMemory, c.MaxMemory, c.MaxTimeout, c.MaxFuel, c.MaxHostCalls = of.PluginDir, of.GuestMemory, of.MaxMemory, of.MaxTimeout, of.MaxFuel, of.MaxHostCalls
	return c, nil
}

// delivery is what a plugin directory is to have.
type delivery struct {
	dir       string
	files     map[string][]byte // by name
	delivered map[string]string // SHA-256 of what the last delivery has written, by name
	write     []string          // names, in their order
	remove    []string
	edited    []string // that stay, or are replaced
}

func readDelivery(from, dir string) (*delivery, error) {
	d := &delivery{dir: dir, files: map[string][]byte{}, delivered: map[string]string{}}
	if err := registry.CheckTrust(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); strings.HasPrefix(e.Name(), ".") || ext != ".wasm" && ext != ".json" {
			continue
		}
		if d.files[e.Name()], err = regular.Read(filepath.Join(from, e.Name()), wasm.MaxModule, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(from, e.Name()), err)
		}
	}
	record, err := os.ReadFile(d.path(deliveredFile))
	if err == nil {
		err = json.Unmarshal(record, &d.delivered)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", d.path(deliveredFile), err)
	}
	return d, d.plan()
}

func (d *delivery) path(name string) string { return filepath.Join(d.dir, name) }

// plan compares the files with the directory's.
func (d *delivery) plan() error {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if err := d.compare(name); err != nil {
			return err
		}
	}
	if err := d.readBeside(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.delivered)) {
		if _, stays := d.files[name]; !stays {
			d.remove = append(d.remove, name)
		}
	}
	// A module never meets another one's settings for long: X.json is there before X.wasm, and goes after it.
	slices.SortStableFunc(d.write, byExtension)
	slices.SortStableFunc(d.remove, func(a, b string) int { return byExtension(b, a) })
	return nil
}

func (d *delivery) compare(name string) error {
	now, err := os.ReadFile(d.path(name))
	before, has := d.delivered[name]
	_, beside := d.delivered[stem(name)+".wasm"]
	switch wanted := digest(d.files[name]); {
	case errors.Is(err, fs.ErrNotExist):
		d.write = append(d.write, name)
	case err != nil:
		return err
	case digest(now) == wanted:
		d.delivered[name] = wanted
	case !has && !beside:
		return fmt.Errorf("%s is there, and no delivery has brought it: remove it, or deliver the plugin under another name", d.path(name))
	case digest(now) != before && before == wanted:
		d.leave(name, now)
	default:
		if digest(now) != before {
			d.edited = append(d.edited, "replace "+name+", which was edited on this node")
		}
		d.write = append(d.write, name)
	}
	return nil
}

// readBeside reads JSON files that no delivery has brought, and that the node has beside delivered
// modules, such as those that plugin disable makes. Each is an edit of its plugin: it stays, or
// goes with the module.
func (d *delivery) readBeside() error {
	for _, module := range slices.Concat(slices.Collect(maps.Keys(d.files)), slices.Collect(maps.Keys(d.delivered))) {
		name := stem(module) + ".json"
		_, wanted := d.files[name]
		_, has := d.delivered[name]
		if filepath.Ext(module) != ".wasm" || wanted || has {
			continue
		}
		now, err := os.ReadFile(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if _, stays := d.files[module]; stays {
			d.leave(name, now)
		} else {
			d.delivered[name] = digest(now)
		}
	}
	return nil
}

func (d *delivery) leave(name string, now []byte) {
	d.edited = append(d.edited, "leave "+name+": it was edited on this node")
	d.files[name] = now
}

func byExtension(a, b string) int { return strings.Compare(filepath.Ext(a), filepath.Ext(b)) }

func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// check loads the plugins as the proxy would, with these limits, from a
// directory of their own. That is in the plugin directory, which is trusted: anyone may write to
// a temporary directory that kubelet makes.
func (d *delivery) check(cmd *cobra.Command, c *config.Config) error {
	stage, err := filepath.Abs(d.path(".deliver"))
	if err == nil {
		err = os.RemoveAll(stage) // of a delivery that was killed
	}
	if err == nil {
		err = os.Mkdir(stage, 0o700)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	c.PluginDir, c.HookDir, c.StateDir, c.CgroupRoot = filepath.Join(stage, "plugins.d"), "", "", ""
	c.CacheDir = filepath.Join(stage, "cache") // with it, a process of its own compiles
	if err := os.Mkdir(c.PluginDir, 0o755); err != nil {
		return err
	}
	for name, content := range d.files {
		if err := os.WriteFile(filepath.Join(c.PluginDir, name), content, 0o644); err != nil {
			return err
		}
	}
	if _, problems := registry.Read(registry.Dirs{Plugins: c.PluginDir}); len(problems) > 0 { // a JSON file whose module DIR does not have is one
		return errors.Join(problems...)
	}
	lines, err := daemon.Check(cmd.Context(), c)
	for _, line := range lines {
		fmt.Fprintln(cmd.OutOrStdout(), printable(line))
	}
	return err
}

// apply changes one file at a time. The record follows each, so that a delivery that was
// interrupted can be made again.
func (d *delivery) apply(out io.Writer) error {
	for _, name := range d.write {
		fmt.Fprintf(out, "write %s\n", plugin.Name(d.path(name)))
		if err := writeFile(d.path(name), d.files[name], 0o644); err != nil {
			return err
		}
		d.delivered[name] = digest(d.files[name])
		if err := d.save(); err != nil {
			return err
		}
	}
	for _, name := range d.remove {
		fmt.Fprintf(out, "remove %s\n", plugin.Name(d.path(name)))
		if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(d.delivered, name)
		if err := d.save(); err != nil {
			return err
		}
	}
	for _, line := range d.edited {
		fmt.Fprintln(out, printable(line))
	}
	return d.save()
}

func (d *delivery) save() error {
	b, err := json.MarshalIndent(d.delivered, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(d.path(deliveredFile), append(b, '\n'), 0o644)
}
