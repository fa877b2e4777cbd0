package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

const deliverLong = `The plugins of DIR are its .wasm and .json files, by the rules of the plugin directory. The command
puts each module into .modules of the plugin directory, and then the plugin's JSON file, which
names the module and its digest, into its place: code and settings change by one rename. It removes
the owner's plugins that DIR does not have. Plugins of other owners, and files that no delivery has
brought, stay: if DIR has one of the same id, the command fails and changes nothing. So it does if
the proxy would not load one of the plugins. The exit code is then 8, unless the state of the node
is why, such as a full disk: another try may succeed.

A delivered JSON file that was edited on the node stays as it is until DIR has other code or
settings for the plugin. So a plugin that was disabled on a node stays disabled when its
DaemonSet's pod restarts.

With --probation, each plugin that changes is on probation from when it is active: if its circuit
breaker opens, more of its calls fail than before, or a write of its values does, or if the proxy
has to be started three times without an orderly stop, the node goes back to the version before by
itself, and does not load this one again. A JSON file that is changed by hand ends the probation.
With --max-refused, so it does if the plugin refuses more of at least 20 calls. Another delivery of
the same plugins with --probation changes both in a probation that has begun. The new length counts
from its start.

With --wait, the command then waits until the running proxy has these modules and settings active.
It asks on the admin socket, or on the status socket. If plugins are bypassed on the node, or one is
disabled there, it says so and succeeds. The exit code is 6 if the proxy cannot load a plugin, or
the time is over. With --check-only --wait it fails if a plugin was not delivered yet, and asks the
proxy: for a readiness probe.

Plugins are loaded with the limits of the settings in --config, which also say where the plugin
directory and the sockets are. A file that is not there is no error: the defaults are then those of
the proxy, too.`

// deliverFlags are those of plugin deliver.
type deliverFlags struct {
	dir, owner, maxRefused                 string
	allowEmpty, anyName, checkOnly, stayOn bool
	wait, probation                        time.Duration
}

// ownerName is what an owner may be called.
var ownerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)

// percentage is how a percent is written.
var percentage = regexp.MustCompile(`^([1-9]?[0-9]|100)%$`)

func deliverCommand() *cobra.Command {
	var o deliverFlags
	cmd := &cobra.Command{
		Use:   "deliver DIR",
		Short: "Make an owner's plugins on a node those of a directory, such as a mounted ConfigMap",
		Long:  deliverLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !ownerName.MatchString(o.owner) {
				return wrongUsage("--owner: %q is not the name of an owner: up to 63 letters, digits and ._/- ; it says whose plugins may be replaced and removed", o.owner)
			}
			if o.probation < 0 {
				return wrongUsage("--probation: must be a time such as 10m, or 0 for none, got %v", o.probation)
			}
			if o.maxRefused != "" && !percentage.MatchString(o.maxRefused) {
				return wrongUsage("--max-refused: must be a percent such as 5%%, got %q", o.maxRefused)
			}
			if o.maxRefused != "" && o.probation == 0 {
				return wrongUsage("--max-refused: refusals are judged in a probation: give --probation, too")
			}
			if err := deliver(cmd, args[0], o); err != nil {
				return fmt.Errorf("delivering plugins: %w", err)
			}
			if o.stayOn {
				<-cmd.Context().Done()
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "plugin-dir", "", "plugin directory (default: plugin-dir of the settings)")
	f.StringVar(&o.owner, "owner", "", "whose delivery it is; required")
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "let a DIR without plugins remove all that the owner has")
	f.BoolVar(&o.anyName, "any-name", false, "let a file have another name than its module: qos is 50-qos or 50-qos-batch otherwise")
	f.BoolVar(&o.checkOnly, "check-only", false, "change no plugin: say whether the proxy would load them, or with --wait whether it has them active")
	waitFlag(cmd, &o.wait, 0, "has the plugins active")
	f.DurationVar(&o.probation, "probation", 0, "how long a plugin that changes may be taken back by the node itself; 0: not at all")
	f.StringVar(&o.maxRefused, "max-refused", "", "percent of its calls that a plugin may refuse in its probation, such as 5%; empty: refusals are not judged")
	f.BoolVar(&o.stayOn, "stay", false, "do not end when all is done, for the container of a DaemonSet")
	f.String(config.FileFlag, "", "YAML file with the proxy's settings, for its plugin-dir, sockets and limits of plugins")
	return cmd
}

func deliver(cmd *cobra.Command, from string, o deliverFlags) error {
	file := settingsFile(cmd, "/")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		file = ""
	}
	c, err := config.With(map[string]string{config.FileFlag: file}, os.Environ)
	if err != nil {
		return fmt.Errorf("the proxy's settings cannot be read, so nothing was changed: %w", err)
	}
	c.PluginDir = cmp.Or(o.dir, c.PluginDir)
	directory := delivery.Directory(c.PluginDir)
	of := delivery.Delivery{Owner: o.owner, MayEmpty: o.allowEmpty, CheckOnly: o.checkOnly, Probation: o.probation}
	if most, err := strconv.Atoi(strings.TrimSuffix(o.maxRefused, "%")); err == nil { // else it is empty
		of.MaxRefused = &most
	}
	if of.Plugins, err = delivery.Read(from); err != nil {
		return refused(fmt.Errorf("nothing was changed: %w", err))
	}
	check := func(plugins, scratch string) error {
		if err := tryPlugins(cmd, c, plugins, scratch); err != nil {
			return refused(fmt.Errorf("the proxy would not load all of them, so nothing was changed: %w", err))
		}
		if o.anyName {
			return nil
		}
		return checkNames(cmd, plugins, scratch)
	}
	var plan *delivery.Plan
	if o.checkOnly && o.wait > 0 {
		plan, err = directory.Plan(of)
	} else {
		plan, err = directory.Deliver(cmd.Context(), of, check)
	}
	if err != nil {
		return err
	}
	would := ""
	if o.checkOnly {
		would = "would "
	}
	say := func(format string, ids []string) {
		for _, id := range ids {
			fmt.Fprintf(cmd.OutOrStdout(), format+"\n", id)
		}
	}
	say(would+"write %s", texts(plan.Write, func(p delivery.Plugin) string { return p.ID }))
	say(would+"remove %s", plan.Remove)
	say(would+"replace %s, which was edited on this node", plan.Edited)
	say(would+"change the probation of %s", plan.Judge)
	say("leave %s: it was edited on this node", plan.Kept)
	if o.wait == 0 {
		return nil
	}
	if pending := len(plan.Write) + len(plan.Remove); o.checkOnly && pending > 0 {
		return coded{fmt.Errorf("%s yet to be delivered or removed", number(pending, "plugin")), exitNotActive}
	}
	ids := texts(of.Plugins, func(p delivery.Plugin) string { return p.ID })
	return following{c, o.wait, true}.await(cmd, append(ids, plan.Remove...)...)
}

// refused gives an error of plugins its exit code, unless it is one of the node, which another try may not meet.
func refused(err error) error {
	if wasm.Temporary(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return coded{err, exitRefused}
}

// tryPlugins loads the plugins of a directory as the proxy would with these limits, and shows what they are. Other settings
// do not count: they may name what a pod does not have. The directory is one that is trusted: anyone may write to a temporary
// one that kubelet makes.
func tryPlugins(cmd *cobra.Command, limits *config.Config, dir, scratch string) error {
	c := config.Default()
	c.GuestMemory, c.MaxMemory, c.MaxTimeout = limits.GuestMemory, limits.MaxMemory, limits.MaxTimeout
	c.MaxFuel, c.MaxHostCalls = limits.MaxFuel, limits.MaxHostCalls
	c.PluginDir, c.CacheDir = dir, scratch // with a cache, a process of its own compiles
	c.HookDir, c.CgroupRoot = "", ""
	lines, err := daemon.Check(cmd.Context(), c, false)
	for _, line := range lines {
		fmt.Fprintln(cmd.OutOrStdout(), printable(line))
	}
	return err
}

// checkNames compares the ids of plugins with the names of their modules.
func checkNames(cmd *cobra.Command, dir, scratch string) error {
	engine, err := wasm.NewEngine(cmd.Context(), wasm.Options{CacheDir: scratch})
	if err != nil {
		return err
	}
	defer engine.Close(cmd.Context())
	all, _ := registry.Read(registry.Dirs{Plugins: dir}) // what is wrong was found before
	for _, d := range all {
		if d.IsHookServer() || d.Disabled {
			continue
		}
		module, err := d.ReadModule()
		if err != nil {
			return err
		}
		in, err := engine.Inspect(cmd.Context(), module, wasm.PluginOptions{})
		if err != nil {
			return err
		}
		has := in.Manifest.Name
		if id := numbered.ReplaceAllString(d.ID, ""); id != has && !strings.HasPrefix(id, has+"-") {
			return fmt.Errorf("nothing was changed: %s is the plugin %q by its manifest: name the file as in 50-%s.wasm, or give --any-name", d.ID, has, has)
		}
	}
	return nil
}
