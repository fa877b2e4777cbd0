package slots

import (
	"context"
	"reflect"
)

// warnOnce reports the warnings of an active plugin, once for each version and whenever they
// change with its file.
func (s *Slots) warnOnce(ctx context.Context, p *slot) {
	warnings := s.loader.Warnings(p.active.description, p.active.loaded.Manifest())
	if reflect.DeepEqual(p.warned, warnings) {
		return
	}
	p.warned = warnings
	for _, n := range warnings {
		s.observer.Observe(ctx, n)
	}
}
