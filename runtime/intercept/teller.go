package intercept

import (
	"context"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// teller tells one plugin of pods.
type teller struct {
	*interceptor
	member plugin.Member
}

func newTeller(o Options, m plugin.Member) *teller {
	// An event's failure counts for the breaker, which must not count it twice; a
	// sweep leaves a plugin alone whose breaker is open.
	m.Breaker, m.Hooks = nil, m.Hooks&abi.HookSetOf(abi.Synchronize)
	return &teller{interceptor: newInterceptor(o, cri.Method{}), member: m}
}

// tell asks the plugin, with the store's own view of the pod if it has one, and
// carries out what it wants. The error is the plugin's, or ctx's.
func (t *teller) tell(ctx context.Context, pod *crifield.Pod) error {
	if known, ok := t.Store.Pod(pod.ID); ok {
		pod = crifield.PodOf(known)
	}
	heard := &hearing{Plugin: t.member.Plugin}
	m := t.member
	m.Plugin = heard
	if err := t.apart(ctx, abi.Synchronize, pod, m); err != nil {
		return err
	}
	if !heard.asked { // it wants no such pod, or there is no time
		return context.Cause(ctx)
	}
	return heard.err
}

// hearing remembers a plugin's error, which a chain passes over in hooks that
// refuse nothing.
type hearing struct {
	plugin.Plugin
	asked bool
	err   error
}

// Call implements plugin.Plugin.
func (h *hearing) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	h.asked, h.err = true, errPanicked
	h.err = h.Plugin.Call(ctx, budget, ev, adj)
	return h.err
}
