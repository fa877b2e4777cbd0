package plugin

import (
	"context"
	"errors"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Resuming is a Subject that goes through a node's pods, and begins where the one before was stopped.
type Resuming interface {
	// Stop notes that the next one begins with the pod that the plugin looked at last. unfinished reports whether an
	// object is that pod or one of its containers. With false the plugin got no further than the first pod.
	Stop() (unfinished func(abi.Object) bool, further bool)
}

// Interrupted reports whether a limit of the fuel, the time or the host calls of a Tick ended it with err after the plugin was
// done with some pods. unfinished tells which objects belong to the pod that it was at.
func Interrupted(ev Event, err error) (unfinished func(abi.Object) bool, yes bool) {
	of, ok := ev.(Resuming)
	if !ok || ev.Hook() != abi.Tick || !byLimit(err) {
		return nil, false
	}
	return of.Stop()
}

func byLimit(err error) bool {
	var known *ClassError
	if errors.As(err, &known) {
		return known.Class == observe.ClassFuel || known.Class == observe.ClassHostCalls
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// keepFinished keeps what a plugin wants of the pods that it was done with when a limit stopped its Tick with err, and
// reports whether there may be any.
func (a *Adjustment) keepFinished(ctx context.Context, observer observe.Observer, err error) bool {
	unfinished, yes := Interrupted(a.event, err)
	if !yes {
		return false
	}
	a.changes = slices.DeleteFunc(a.changes, func(o Owned) bool { return unfinished(o.Change.Object) })
	observer.Observe(ctx, &observe.TickStopped{
		Plugin: a.of.ID, Changes: len(a.changes), Class: classOf(ctx, a, err), Err: a.redactError(err),
	})
	return true
}
