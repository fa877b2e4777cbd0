package slots

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Check loads every plugin, and calls none, as daemon.Check says.
func (s *Slots) Check(ctx context.Context, shadows bool) (plugins []string, err error) {
	descriptions, problems := registry.Read(dirsOf(s.config))
	var errs []error
	var last []string // the lines after those of plugins that load
	for _, problem := range problems {
		if id, is := registry.Alone(problem); is {
			last = append(last, fmt.Sprintf("%s: warning: %v", id, problem))
		} else {
			errs = append(errs, problem)
		}
	}
	for _, description := range descriptions {
		if description.Disabled {
			last = append(last, fmt.Sprintf("%s: disabled by %s", description.ID, description.JSONName()))
			continue
		}
		lines, err := s.loader.Check(ctx, description)
		if err != nil && description.Problem == nil { // which is among the problems
			errs = append(errs, err)
		}
		plugins = append(plugins, lines...)
		if shadows && err == nil {
			plugins = append(plugins, s.loader.CheckShadow(ctx, description)...)
		}
	}
	return append(plugins, last...), errors.Join(errs...)
}
