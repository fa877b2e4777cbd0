package intercept

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Tick calls hook Tick of a member once, and returns when what it wants of pods and
// containers has been carried out. A failure is an event. Only one Tick of a plugin may run
// at a time. Lists begin with the pod that has the ID from, or the first one after that. If a limit stops the plugin, next is
// where the next Tick is to begin, else "".
func Tick(ctx context.Context, o Options, m plugin.Member, from string) (next string) {
	e, i := &event{round: round{from: from}}, &interceptor{Options: o}
	called, err := i.standalone(ctx, e, abi.Tick, nil, m) // an error is ctx's, or the chain has told of it
	if called && err == nil {                             // a whole Tick has not repeated what earlier generations asked for in theirs
		i.Withdraw(ctx, func(of enforce.ID, _ enforce.Target, w enforce.Wish) bool {
			if w.Plugin != m.ID || w.Hook != abi.Tick || w.Generation == i.Generations[m.ID] {
				return false
			}
			sandbox, ok := i.Enforcer.Sandbox(of)
			return ok && len(i.Store.IDsByListAlone(sandbox)) == 0 // else the plugin may not have known what to ask for
		})
	}
	return e.round.next
}

// standalone calls one plugin in a hook of no call, about a pod or nil, and carries out
// what it wants. It is not called if its hooks or its match exclude that. The error is the plugin's, or ctx's, or a panic's, which no
// caller would survive.
func (i *interceptor) standalone(
	ctx context.Context, e *event, hook abi.Hook, pod *crifield.Pod, m plugin.Member,
) (called bool, err error) {
	i.begin(e, hook, pod)
	kept := &errorKeeper{Plugin: m.Plugin}
	m.Hooks, m.Plugin = m.Hooks&abi.HookSetOf(hook), kept
	defer func() {
		if r := recover(); r != nil {
			i.Observer.Observe(ctx, &observe.Panicked{
				During: "a hook", Hook: hook, Object: e.About(), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx, cancel := i.Cut.Context(ctx)
	defer cancel()
	budget := i.CallTime
	if hook == abi.Tick { // nobody waits for it, and its plugin has a limit of its own
		budget = plugin.MaxTimeout
	}
	owned, err := i.NewChain(m).Dispatch(ctx, plugin.NewBudget(budget), e)
	if i.Cut.hasBegun() {
		return kept.called, context.Canceled
	}
	_, _ = i.applyFiles(ctx, e, abi.Pod, owned) // a failure is an event
	reconciled := i.deferUpdates(ctx, e, owned)
	if hook == abi.Tick { // which is in no queue
		reconciled.Wait(context.WithoutCancel(ctx))
	}
	return kept.called, cmp.Or(err, kept.err)
}
