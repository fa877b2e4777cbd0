package daemon

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Check loads every plugin as Run would, and calls none. It touches no state of a proxy. It returns a line for
// each plugin that loads, in the order of the chain, and one for all that Run would
// warn of then; after them a line for each plugin that its file switches off. The error
// says everything that is wrong. It is a [NotStarted] if Run could not begin to serve.
// With shadows, it also says which shadows of plugins would not be loaded: a directory with copies of plugins' files may lack
// their modules.
func Check(ctx context.Context, c *config.Config, shadows bool) (plugins []string, err error) {
	present := *c
	present.DataDir, present.StateDir = "", "" // the files are checked as they are
	d, err := open(ctx, &present, observe.Discard(), optionsOf(c, observe.Discard()))
	if err != nil {
		return nil, &NotStarted{err}
	}
	defer d.close()
	return d.slots.Check(ctx, shadows)
}
