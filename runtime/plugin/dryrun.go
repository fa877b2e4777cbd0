package plugin

import (
	"context"
	"errors"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// tell makes events of what a member in dry-run wants, which is not done: it changes nothing and refuses nothing. What it
// keeps for itself it keeps. Its failures are failures; they do not refuse a call if the member's policy is Ignore.
func (c *Chain) tell(ctx context.Context, m *Member, s Subject, adj *Adjustment, err error) error {
	var refused *Rejection
	switch about := observe.ObjectOf(s); {
	case errors.As(err, &refused):
		c.observer.Observe(ctx, &observe.DryRunRejection{Plugin: m.ID, Hook: s.Hook(), Object: about, Reason: refused.Reason})
		err = nil
	case err == nil:
		for i := range adj.changes {
			e := observe.DryRunChange(*adj.changed(s, &adj.changes[i].Change))
			e.Plugin, e.Object = m.ID, about
			c.observer.Observe(ctx, &e)
		}
	}
	adj.changes, adj.rejection = nil, nil
	return err
}
