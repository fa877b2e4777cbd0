package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Check loads every plugin as Run would, and calls none. It returns a line for
// each plugin that loads, in the order of the chain, and one for all that Run would
// warn of then; after them a line for each plugin that its file switches off. The error
// says everything that is wrong.
func Check(ctx context.Context, c *config.Config) (plugins []string, err error) {
	present := *c
	present.DataDir = "" // the files are checked as they are
	d, err := open(ctx, &present, observe.Discard(), optionsOf(c, observe.Discard()))
	if err != nil {
		return nil, err
	}
	defer d.close()
	dirs := dirsOf(c)
	descriptions, problems := registry.Read(dirs)
	var errs []error
	var alone []string
	for _, problem := range problems {
		if id, is := registry.Alone(problem); is {
			alone = append(alone, fmt.Sprintf("%s: warning: %v", id, problem))
		} else {
			errs = append(errs, problem)
		}
	}
	for _, description := range descriptions {
		lines, err := d.slots.loader.check(ctx, description)
		if err != nil && description.Problem == nil { // which is among the problems
			errs = append(errs, err)
		}
		plugins = append(plugins, lines...)
	}
	plugins = append(plugins, alone...)
	for _, off := range registry.Disabled(dirs) {
		plugins = append(plugins, fmt.Sprintf("%s: disabled by %s", off.ID, off.JSONName()))
	}
	return plugins, errors.Join(errs...)
}

// check loads one plugin, and says what it is and what an operator should know of it.
func (l *loader) check(ctx context.Context, d registry.Description) (lines []string, err error) {
	if d.Problem != nil {
		return nil, d.Problem
	}
	have, err := l.open(ctx, d, newPersistent(), false)
	if err != nil {
		return nil, err
	}
	defer have.release()
	m, manifest := l.member(&version{description: d, loaded: have}), have.Manifest()
	mode := m.Policy.String()
	if m.dryRun {
		mode += ", dry-run"
	}
	lines = append(lines, fmt.Sprintf("%s: %s, %s, %s", m.ID, l.kind(d).title(manifest), mode, calledIn(m)))
	for _, n := range l.warnings(d, manifest) {
		lines = append(lines, fmt.Sprintf("%s: warning: %s", m.ID, slogsink.Line(n, "plugin")))
	}
	return lines, nil
}

// calledIn names the hooks in which a plugin is called, or says why there are none.
func calledIn(m member) string {
	if names := m.Hooks.Names(); len(names) > 0 {
		return "hooks " + strings.Join(names, ", ")
	}
	return "no hooks: it is never called, since runtime-hooks of its file names none that it can serve"
}
