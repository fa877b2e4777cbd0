package daemon

import (
	"context"
	"errors"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/backend"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

func (d *daemon) explain(ctx context.Context, name string) (*explain.Report, error) {
	if d.reconciler.Following.Load() {
		report, err := d.reconciler.Enforcer().Explain(ctx, name)
		if errors.Is(err, explain.ErrNotFound) && d.reconciler.Backend.Behind() {
			return nil, admin.NotReady("the proxy has not read the pods of the container runtime yet; " + err.Error())
		}
		return report, err
	}

	// No plugin is loaded, but some may have left values. The store follows no pods then, so that the runtime is asked for them.
	switch {
	case !d.reconciler.Ledger.Empty(), len(d.reconciler.Ledger.IgnoredPods()) > 0:
	case d.slots.Bypass.Status().On:
		return nil, admin.NotReady("plugins are bypassed and none has left a value, so the proxy passes every call as it comes and knows of no pod")
	default:
		return nil, admin.NotReady("no plugin is loaded and none has left a value, so the proxy passes every call as it comes and knows of no pod")
	}
	left, syncErr := d.reconciler.EnforcerOfRuntime(ctx)
	report, err := left.Explain(ctx, name)
	if errors.Is(err, explain.ErrNotFound) && !backend.Complete(syncErr) {
		return nil, admin.NotReady("the container runtime does not tell of its pods: " + syncErr.Error())
	}
	return report, err
}
