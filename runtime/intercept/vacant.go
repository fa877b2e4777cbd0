package intercept

import (
	"context"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// forgetFiles drops the ledger's record of a container that has been removed, and of a pod that the
// store lacks. The cgroup of a pod is that of all its sandboxes, also of those to come.
func (i *interceptor) forgetFiles(ctx context.Context, own crifield.Object) {
	id := i.idOf(own)
	if own.Container != nil {
		i.Ledger.Remove(id)
		i.liftPod(ctx, id.Pod)
		return
	}
	switch {
	case i.known(id): // it has another sandbox
	case own.Pod.Config.GetMetadata().GetUid() == "": // its next sandbox has another ID in the ledger
		i.Ledger.Remove(id)
	default:
		i.Ledger.Vacate(id, i.known, i.hasGroup)
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
