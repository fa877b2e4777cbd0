package plugin

import (
	"context"
	"errors"
	"log/slog"
)

// DryRun returns p such that what it wants is logged and not done: it changes
// nothing and refuses nothing, nor is what it takes of the time of the call's other
// plugins. What it keeps for itself it keeps. Its failures are failures; they do not
// refuse a call if the member's policy is Ignore.
func DryRun(p Plugin, id string, log *slog.Logger) Plugin { return &dryRun{p, id, log} }

type dryRun struct {
	Plugin
	id  string
	log *slog.Logger
}

// Call implements Plugin. The plugin has a budget of its own, beside that of the call's
// other plugins: to them it is waiting.
func (d *dryRun) Call(ctx context.Context, budget *Budget, ev Event, adj *Adjustment) error {
	defer budget.Waited(budget.Wait())
	err := d.Plugin.Call(ctx, budget.beside(), ev, adj)
	if err == nil {
		err = adj.permitAll()
	}
	if err == nil {
		d.tell(ctx, ev, adj)
	}
	adj.changes, adj.rejection = nil, nil
	var refused *Rejection
	if errors.As(err, &refused) {
		d.refused(ctx, ev, refused)
		return nil
	}
	return err
}

// tell logs what would have been done.
func (d *dryRun) tell(ctx context.Context, ev Event, adj *Adjustment) {
	if adj.rejection != nil {
		d.refused(ctx, ev, adj.rejection)
		return
	}
	for i := range adj.changes {
		c := &adj.changes[i].Change
		d.log.InfoContext(ctx, "plugin would change field", "plugin", d.id, "hook", ev.Hook().String(), about(ev), "field", adj.Hide(c.Target()), "value", c.value(adj.Said))
	}
}

func (d *dryRun) refused(ctx context.Context, ev Event, refused *Rejection) {
	d.log.InfoContext(ctx, "plugin would refuse the call", "plugin", d.id, "hook", ev.Hook().String(), about(ev), "reason", refused.Reason)
}

// about names what the event is about, if the event can.
func about(ev Event) slog.Attr {
	if v, ok := ev.(slog.LogValuer); ok {
		return slog.Any("", v)
	}
	return slog.Attr{}
}
