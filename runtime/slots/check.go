package slots

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Check loads every plugin, and calls none, as daemon.Check says.
func (s *Slots) Check(ctx context.Context) (plugins []string, err error) {
	dirs := dirsOf(s.config)
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
		lines, err := s.loader.Check(ctx, description)
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
