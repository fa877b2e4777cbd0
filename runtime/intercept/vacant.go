package intercept

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// forgetFiles drops the ledger's record of an object that the call has removed. The cgroup of a
// pod is that of all its sandboxes, also of those to come.
func (c *call) forgetFiles(ctx context.Context, own crifield.Object) {
	id := c.idOf(own)
	if own.Container != nil {
		c.Ledger.Remove(id)
		c.raisePod(ctx, id.Pod)
		return
	}
	switch {
	case c.known(id): // it has another sandbox
	case own.Pod.Config.GetMetadata().GetUid() == "": // its next sandbox has another ID in the ledger
		c.Ledger.Remove(id)
	default:
		c.Ledger.Vacate(id, c.known, c.hasGroup)
	}
}

// known reports whether the store has an object of the ledger.
func (i *interceptor) known(id ledger.ID) (ok bool) {
	if id.Container == "" {
		_, ok = i.podOf(id.Pod)
	} else {
		_, ok = i.Store.Container(id.Container)
	}
	return ok
}

// hasGroup reports whether a cgroup is there, or may be.
func (i *interceptor) hasGroup(group string) bool { return i.Cgroups != nil && !i.Cgroups.Gone(group) }

// vacant reports whether a pod has lost its last sandbox and has no other one yet. The store alone
// knows of a sandbox that was made while no call was intercepted.
func (i *interceptor) vacant(id ledger.ID) bool {
	return i.Ledger.Vacant(id) && !i.known(id)
}

// dropGone drops the record of a pod without a sandbox if its cgroup is gone, and reports that.
func (i *interceptor) dropGone(id ledger.ID) bool {
	gone := i.vacant(id) && !i.hasGroup(i.Ledger.Group(id))
	if gone {
		i.Ledger.Remove(id)
	}
	return gone
}
