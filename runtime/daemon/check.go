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
// warn of then; the error says everything that is wrong.
func Check(ctx context.Context, c *config.Config, log *slog.Logger) (plugins []string, err error) {
	d, err := open(ctx, c, log, optionsOf(c, log))
	if err != nil {
		return nil, err
	}
	defer d.close()
	descriptions, problems := registry.Read(registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir})
	members, errs := d.loader.load(ctx, descriptions)
	for _, m := range members {
		if m.absent() {
			continue
		}
		manifest := m.loaded.Manifest()
		what := manifest.Name + " " + manifest.Version
		if m.hookServer {
			what = manifest.Description
		}
		plugins = append(plugins, fmt.Sprintf("%s: %s, %v, %s", m.ID, what, m.Policy, inForce(m)))
		for _, n := range d.loader.notes(m.description, manifest) {
			plugins = append(plugins, fmt.Sprintf("%s: warning: %v", m.ID, n))
		}
	}
	return plugins, errors.Join(append(problems, errs...)...)
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
