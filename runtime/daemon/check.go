package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Check loads every plugin as Run would, and calls none. It returns a line for
// each plugin that loads, in the order of the chain, and one for all that Run would
// warn of then; after them a line for each plugin that its file switches off. The error
// says everything that is wrong.
func Check(ctx context.Context, c *config.Config, log *slog.Logger) (plugins []string, err error) {
	d, err := open(ctx, c, log, optionsOf(c, log))
	if err != nil {
		return nil, err
	}
	defer d.close()
	dirs := registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir}
	descriptions, problems := registry.Read(dirs)
	members, errs := d.loader.load(ctx, descriptions)
	for _, m := range members {
		if m.absent() {
			continue
		}
		plugins = append(plugins, summary(m))
		for _, n := range d.loader.notes(m.description, m.loaded.Manifest()) {
			plugins = append(plugins, fmt.Sprintf("%s: warning: %v", m.ID, n))
		}
	}
	for _, off := range registry.Disabled(dirs) {
		plugins = append(plugins, fmt.Sprintf("%s: disabled by %s", off.ID, describing(off)))
	}
	return plugins, errors.Join(append(problems, errs...)...)
}

// summary is the line of a plugin that loads.
func summary(m member) string {
	manifest := m.loaded.Manifest()
	name, mode := manifest.Name+" "+manifest.Version, m.Policy.String()
	if m.hookServer {
		name = manifest.Description
	}
	if m.description.DryRun {
		mode += ", dry-run"
	}
	return fmt.Sprintf("%s: %s, %s, %s", m.ID, name, mode, inForce(m))
}

// inForce names the hooks that a plugin is asked in, or says why there are none.
func inForce(m member) string {
	switch names := m.Hooks.Names(); {
	case len(names) > 0:
		return "hooks " + strings.Join(names, ", ")
	case m.hookServer:
		return "no hooks: it is never asked, since runtime-hooks of its file names none that the protocol has"
	}
	return "no hooks: it is never asked, since runtime-hooks of its file names none that it wants"
}
