package plugin

import (
	"context"
	"errors"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// DryRun returns p such that what it wants is an event and not done: it changes
// nothing and refuses nothing, nor is what it takes of the time of the call's other
// plugins. What it keeps for itself it keeps. Its failures are failures; they do not
// refuse a call if the member's policy is Ignore.
func DryRun(p Plugin, id string, observer observe.Observer) Plugin {
	return &dryRun{p, id, observer}
}

type dryRun struct {
	Plugin
	id       string
	observer observe.Observer
}

// Call implements Plugin. The plugin has a budget of its own, beside that of the call's
// other plugins: to them it is waiting.
func (d *dryRun) Call(ctx context.Context, budget *Budget, ev Event, adj *Adjustment) error {
	defer budget.Wait()()
	err := d.Plugin.Call(ctx, budget.beside(), ev, adj)
	if adj.keepFinished(ctx, d.observer, err) {
		err = nil
	}
	if err == nil {
		err = adj.permitAll()
	}
	if err == nil && adj.rejection != nil {
		err = adj.rejection
	}
	var refused *Rejection
	switch about := observe.ObjectOf(ev); {
	case errors.As(err, &refused):
		d.observer.Observe(ctx, &observe.DryRunRejection{Plugin: d.id, Hook: ev.Hook(), Object: about, Reason: refused.Reason})
		err = nil
	case err == nil:
		for i := range adj.changes {
			e := observe.DryRunChange(*adj.changed(ev, &adj.changes[i].Change))
			e.Plugin, e.Object = d.id, about
			d.observer.Observe(ctx, &e)
		}
	}
	adj.changes, adj.rejection = nil, nil
	return err
}
