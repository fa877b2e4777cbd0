package intercept

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// round is how far a plugin comes in a Tick on its way through the node's pods, which ends where it has begun.
type round struct {
	from        string     // ID of the pod that lists begin with, if there is one
	first, last abi.Object // handles that the plugin looked at; 0: none
	next        string     // from of the next Tick, if a limit stopped this one
}

// order has pods in the order of their IDs begin where the round does.
func (r *round) order(all []pods.Pod) []pods.Pod {
	if r.from == "" {
		return all
	}
	begin := slices.IndexFunc(all, func(p pods.Pod) bool { return p.ID >= r.from })
	if begin < 0 {
		return all
	}
	return slices.Concat(all[begin:], all[:begin])
}

// Stop implements plugin.Resuming.
func (e *event) Stop() (unfinished func(abi.Object) bool, further bool) {
	pod := e.handles.podOf(e.round.last)
	if pod == "" || pod == e.handles.podOf(e.round.first) {
		return nil, false
	}
	e.round.next = pod
	return func(o abi.Object) bool { return e.handles.podOf(o) == pod }, true
}
